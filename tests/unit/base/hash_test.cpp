// SPDX-License-Identifier: Apache-2.0
#include "core/base/hash.h"

#include <gtest/gtest.h>
#include <string_view>

using namespace kvatlas;

namespace {

TEST(Hash, isXxh3OfTheEmptyInput) {
    EXPECT_EQ(hash64({}), 0x2D06800538D394C2ull);
} // xxHash specification, XXH3-64

TEST(Hash, piecesHashAsTheirConcatenation) {
    const std::string_view text = "a block is sixteen tokens";
    const auto bytes = std::as_bytes(std::span(text));
    StreamingHash streaming;
    streaming.update(bytes.first(7));
    streaming.update(bytes.subspan(7));
    EXPECT_EQ(streaming.digest(), hash64(bytes));
}

} // namespace
