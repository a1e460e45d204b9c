// SPDX-License-Identifier: Apache-2.0
#include "core/base/bytes.h"

#include <gtest/gtest.h>
#include <limits>

using namespace kvatlas;

namespace {

std::vector<std::byte> raw(std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (int v : values)
        out.push_back(static_cast<std::byte>(v));
    return out;
}

TEST(Bytes, writesLittleEndianAndTheVarintsOfTheLeb128Definition) {
    std::vector<std::byte> out;
    ByteWriter w(out);
    w.fixed<std::uint32_t>(0x01020304);
    w.varint(624485); // the worked example of the DWARF standard
    w.signedVarint(-1);
    w.text("ab");
    EXPECT_EQ(out, raw({4, 3, 2, 1, 0xE5, 0x8E, 0x26, 1, 2, 'a', 'b'}));
}

TEST(Bytes, readsBackTheExtremes) {
    for (std::uint64_t v :
         {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, std::numeric_limits<std::uint64_t>::max()}) {
        std::vector<std::byte> out;
        ByteWriter w(out);
        w.varint(v);
        w.signedVarint(std::numeric_limits<std::int64_t>::min());
        w.signedVarint(std::numeric_limits<std::int64_t>::max());
        ByteReader r(out);
        EXPECT_EQ(r.varint(), v);
        EXPECT_EQ(r.signedVarint(), std::numeric_limits<std::int64_t>::min());
        EXPECT_EQ(r.signedVarint(), std::numeric_limits<std::int64_t>::max());
        EXPECT_TRUE(r.ok() && r.atEnd());
    }
}

TEST(Bytes, aReadPastTheEndFailsAndStaysFailed) {
    const auto data = raw({1, 2});
    ByteReader r(data);
    EXPECT_EQ(r.fixed<std::uint32_t>(), 0u);
    EXPECT_FALSE(r.ok());
    EXPECT_EQ(r.fixed<std::uint8_t>(), 0u);
    EXPECT_FALSE(r.ok());
}

TEST(Bytes, aVarintOfMoreThan64BitsIsMalformed) {
    const auto data = raw({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02});
    ByteReader r(data);
    EXPECT_EQ(r.varint(), 0u);
    EXPECT_FALSE(r.ok());
}

TEST(Bytes, aCountThatCannotFollowIsRefusedBeforeAnythingIsAllocated) {
    std::vector<std::byte> out;
    ByteWriter(out).varint(1u << 30);
    ByteReader r(out);
    EXPECT_EQ(r.count(4), 0u);
    EXPECT_FALSE(r.ok());
}

} // namespace
