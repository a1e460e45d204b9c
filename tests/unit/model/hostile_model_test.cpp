// SPDX-License-Identifier: Apache-2.0
// A tiny model cut after every byte of its header, and thousands of structure-aware mutants of it: each is refused with
// a sentence or opens as a model that can be used to the last byte. What breaks here breaks under the sanitizers.
#include "core/model/model.h"
#include "tests/support/exercise_model.h"
#include "tests/support/tiny_llama.h"

#include <gtest/gtest.h>

using namespace kvatlas;
using namespace kvatlas::model;
using namespace kvatlas::testing;

namespace {

TinyLlama smallest() {
    TinyLlama shape;
    shape.layers = 1;
    shape.embedding = 32;
    shape.headDim = 8;
    shape.feedForward = 32;
    shape.matrixFormat = shape.embeddingFormat = kernels::WeightFormat::Q4_0;
    return shape;
}

// Where the fields of a right file stand, found by walking it as the format's page describes it.
struct Fields {
    std::vector<std::size_t> u64s; // counts, lengths, dimensions, offsets
    std::vector<std::size_t> u32s; // version, types, numbers of dimensions, scalar values
};
class Walker {
public:
    explicit Walker(const Bytes& bytes)
        : m_in(bytes) {}
    Fields walk() {
        m_in.bytes(4);
        u32();
        const auto tensors = u64();
        const auto keys = u64();
        for (std::uint64_t i = 0; i < keys; ++i) {
            text();
            value(u32());
        }
        for (std::uint64_t i = 0; i < tensors; ++i) {
            text();
            for (auto dims = u32(); dims > 0; --dims)
                u64();
            u32();
            u64();
        }
        EXPECT_TRUE(m_in.ok());
        return m_fields;
    }

private:
    std::uint64_t u64() {
        m_fields.u64s.push_back(m_in.position());
        return m_in.fixed<std::uint64_t>();
    }
    std::uint32_t u32() {
        m_fields.u32s.push_back(m_in.position());
        return m_in.fixed<std::uint32_t>();
    }
    void text() { m_in.bytes(u64()); }
    void value(std::uint32_t type) {
        switch (static_cast<GgufType>(type)) {
        case GgufType::Text:
            return text();
        case GgufType::Bool:
            m_in.fixed<std::uint8_t>();
            return;
        case GgufType::Array: {
            const auto element = u32();
            for (auto n = u64(); n > 0; --n)
                value(element);
            return;
        }
        default:
            u32();
            return; // the tiny model has no other widths
        }
    }
    ByteReader m_in;
    Fields m_fields;
};

std::size_t headerBytes(const Bytes& bytes) {
    const auto file = GgufFile::fromBytes(bytes, "tiny.gguf");
    EXPECT_TRUE(file) << file.error().message;
    return static_cast<std::size_t>(file->dataOffset());
}

TEST(HostileModel, isRefusedCutAfterAnyByteOfItsHeader) {
    const Bytes whole = tinyLlama(1, smallest());
    const std::size_t header = headerBytes(whole);
    ASSERT_GT(header, 5000u);
    for (std::size_t length = 0; length < header; ++length) {
        const auto opened =
            GgufFile::fromBytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)), "cut.gguf");
        ASSERT_FALSE(opened) << length;
        ASSERT_EQ(opened.error().kind, ErrorKind::Refused);
        ASSERT_FALSE(opened.error().message.empty());
    }
}

TEST(HostileModel, isRefusedCutAnywhereInItsDataWithTheTensorThatIsNotWhole) {
    const Bytes whole = tinyLlama(1, smallest());
    const std::size_t header = headerBytes(whole);
    TestRandom random(9);
    for (int i = 0; i < 200; ++i) {
        const std::size_t length = header + random.below(whole.size() - header);
        const auto opened =
            GgufFile::fromBytes(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)), "cut.gguf");
        ASSERT_FALSE(opened) << length;
        ASSERT_NE(opened.error().message.find("not complete: tensor '"), std::string::npos) << opened.error().message;
    }
}

TEST(HostileModel, isRefusedOrUsableAfterAnyMutation) {
    const Bytes whole = tinyLlama(1, smallest());
    const std::size_t header = headerBytes(whole);
    const Fields fields = Walker(whole).walk();
    ASSERT_GT(fields.u64s.size(), 400u);
    constexpr std::uint64_t kNasty[] = {0,          1,           2,          3,          31,         33,
                                        64,         255,         256,        65'535,     0x7FFFFFFF, 0x80000000,
                                        0xFFFFFFFF, 0x100000000, 1ull << 42, 1ull << 61, 1ull << 62, (1ull << 63) - 1,
                                        1ull << 63, ~0ull - 31,  ~0ull};
    TestRandom random(2026);
    int opened = 0, refused = 0;
    for (int mutant = 0; mutant < 4000; ++mutant) {
        Bytes bytes = whole;
        for (auto changes = 1 + random.below(3); changes > 0; --changes) {
            const std::uint64_t nasty = random.below(4) == 0 ? random.next() : kNasty[random.below(std::size(kNasty))];
            switch (random.below(5)) {
            case 0:
                std::memcpy(&bytes[fields.u64s[random.below(fields.u64s.size())]], &nasty, 8);
                break;
            case 1:
                std::memcpy(&bytes[fields.u32s[random.below(fields.u32s.size())]], &nasty, 4);
                break;
            case 2: { // a little more or less
                std::uint64_t value = 0;
                const std::size_t at = fields.u64s[random.below(fields.u64s.size())];
                std::memcpy(&value, &bytes[at], 8);
                value += random.below(3) - 1;
                std::memcpy(&bytes[at], &value, 8);
                break;
            }
            case 3:
                bytes[random.below(header)] ^= static_cast<std::byte>(1 << random.below(8));
                break;
            default: { // a stretch of the header somewhere else
                const std::size_t length = 1 + random.below(64);
                std::memmove(&bytes[random.below(header - length)], &bytes[random.below(header - length)], length);
                break;
            }
            }
        }
        const auto model = Model::fromBytes(std::move(bytes), "mutant.gguf");
        if (model) {
            ++opened;
            exercise(**model);
        } else {
            ++refused;
            ASSERT_EQ(model.error().kind, ErrorKind::Refused);
            ASSERT_EQ(model.error().message.find("mutant.gguf: "), 0u) << model.error().message;
        }
    }
    EXPECT_GT(opened, 100);
    EXPECT_GT(refused, 1000);
}

} // namespace
