// SPDX-License-Identifier: Apache-2.0
// The container: the 33 hand-made kinds of file that llama.cpp's own test of its reader has (reliability page of the
// project; 26 wrong, 7 right), what the typed lookups promise, and the files that people really stumble over.
#include "core/model/gguf.h"
#include "tests/support/gguf_writer.h"

#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <sys/stat.h>
#include <unistd.h>

using namespace kvatlas;
using namespace kvatlas::model;
using namespace kvatlas::testing;

namespace {

constexpr std::uint64_t kAllOnes = std::numeric_limits<std::uint64_t>::max();

// One key of every scalar type and one array of every element type.
void writeEveryKindOfKey(GgufWriter& w) {
    w.key("my.u8", GgufType::U8);
    w.keys().fixed(std::uint8_t{200});
    w.key("my.i8", GgufType::I8);
    w.keys().fixed(std::int8_t{-100});
    w.key("my.u16", GgufType::U16);
    w.keys().fixed(std::uint16_t{60000});
    w.key("my.i16", GgufType::I16);
    w.keys().fixed(std::int16_t{-30000});
    w.u32("my.u32", 4'000'000'000u);
    w.i32("my.i32", -2'000'000'000);
    w.f32("my.f32", 0.5f);
    w.flag("my.bool", true);
    w.string("my.text", "text\xFF");
    w.u64("my.u64", kAllOnes);
    w.key("my.i64", GgufType::I64);
    w.keys().fixed(std::numeric_limits<std::int64_t>::min());
    w.key("my.f64", GgufType::F64);
    w.keys().fixed(0.1);
    w.array("my.array.u8", GgufType::U8, std::vector<std::uint8_t>{1, 255});
    w.array("my.array.i8", GgufType::I8, std::vector<std::int8_t>{-1, 127});
    w.array("my.array.u16", GgufType::U16, std::vector<std::uint16_t>{65535});
    w.array("my.array.i16", GgufType::I16, std::vector<std::int16_t>{-32768});
    w.array("my.array.u32", GgufType::U32, std::vector<std::uint32_t>{4'000'000'000u});
    w.array("my.array.i32", GgufType::I32, std::vector<std::int32_t>{-5, 6});
    w.array("my.array.f32", GgufType::F32, std::vector<float>{1.5f, -2.0f});
    w.array("my.array.bool", GgufType::Bool, std::vector<std::uint8_t>{0, 1, 7});
    w.strings("my.array.text", {"a", "", "c\0d"});
    w.array("my.array.u64", GgufType::U64, std::vector<std::uint64_t>{1});
    w.array("my.array.i64", GgufType::I64, std::vector<std::int64_t>{-1});
    w.array("my.array.f64", GgufType::F64, std::vector<double>{2.5});
    w.array("my.array.empty", GgufType::F32, std::vector<float>{});
}
constexpr std::size_t kKeys = 25;

// One tensor of every type that ggml has today, with 1 to 4 dimensions; the data count bytes.
struct Tensors {
    std::vector<std::string> names;
    std::vector<std::vector<std::uint64_t>> dims;
    std::vector<std::uint32_t> types;
    std::vector<Bytes> data;
};
Tensors everyKindOfTensor() {
    Tensors out;
    for (std::uint32_t id = 0; id < 43; ++id) {
        const GgufTensorType* type = ggufTensorType(id);
        if (!type)
            continue;
        std::vector<std::uint64_t> dims = {std::uint64_t{type->groupElements} * (1 + id % 3)};
        for (std::uint32_t d = 0; d < id % 4; ++d)
            dims.push_back(1 + (id + d) % 3);
        std::uint64_t bytes = type->groupBytes;
        for (std::size_t d = 0; d < dims.size(); ++d)
            bytes *= d == 0 ? dims[0] / type->groupElements : dims[d];
        Bytes data;
        for (std::uint64_t i = 0; i < bytes; ++i)
            data.push_back(static_cast<std::byte>(i + id));
        out.names.push_back("my_tensor_" + std::to_string(id));
        out.dims.push_back(dims);
        out.types.push_back(id);
        out.data.push_back(std::move(data));
    }
    return out;
}
void write(GgufWriter& w, const Tensors& tensors) {
    for (std::size_t i = 0; i < tensors.names.size(); ++i)
        w.tensor(tensors.names[i], tensors.dims[i], tensors.types[i], tensors.data[i]);
}

struct Kind {
    std::string name;
    bool good;
    GgufParts parts;
    std::string says; // a part of the sentence that refuses it
    std::function<Bytes()> make;
};

Bytes file(const std::function<void(GgufWriter&)>& fill) {
    GgufWriter w;
    fill(w);
    return w.file();
}
Bytes header(const std::function<void(GgufWriter&)>& fill) {
    GgufWriter w;
    fill(w);
    return w.header();
}
Bytes tensorHeader(const std::function<void(GgufWriter&, Tensors&)>& change) {
    return header([&](GgufWriter& w) {
        Tensors tensors = everyKindOfTensor();
        change(w, tensors);
        write(w, tensors);
    });
}
// A tensor of this shape and type number is described; its data are missing, as they are in the header tests.
Bytes oneTensor(const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset = 0,
                const std::string& name = "my_tensor") {
    return header([&](GgufWriter& w) { w.tensorAt(name, dims, type, offset); });
}
void writeAlignment(GgufWriter& w, std::uint32_t alignment) {
    w.u32("general.alignment", alignment);
    w.alignment = alignment;
}
Bytes withoutLast(Bytes bytes, std::size_t count) {
    bytes.resize(bytes.size() - count);
    return bytes;
}

std::vector<Kind> kinds() {
    constexpr auto kHeader = GgufParts::HeaderOnly;
    constexpr auto kAll = GgufParts::HeaderAndData;
    const auto version = [](std::uint32_t v) { return [v] { return GgufWriter(v).file(); }; };
    return {
        {"header: bad magic", false, kAll, "not a GGUF file",
         [] { return file([](GgufWriter& w) { w.magic = "FUGG"; }); }},
        {"header: version 0", false, kAll, "version 0", version(0)},
        {"header: version 1", false, kAll, "version 1", version(1)},
        {"header: future version", false, kAll, "version 4", version(4)},
        {"header: tensor count -1", false, kAll, "tensors, more than",
         [] { return file([](GgufWriter& w) { w.tensorCountOffset = kAllOnes; }); }},
        {"header: key count -1", false, kAll, "metadata keys, more than",
         [] { return file([](GgufWriter& w) { w.keyCountOffset = kAllOnes; }); }},
        {"header: empty", true, kAll, "", [] { return file([](GgufWriter&) {}); }},

        {"keys: bad key length", false, kAll, "metadata key 1 of 2",
         [] {
             return file([](GgufWriter& w) {
                 w.keys().fixed(kAllOnes);
                 w.countKey();
                 w.u32("b", 1);
             });
         }},
        {"keys: empty key", false, kAll, "name of 0 bytes", [] { return file([](GgufWriter& w) { w.u32("", 1); }); }},
        {"keys: bad type", false, kAll, "'my.key' has the unknown type 13",
         [] {
             return file([](GgufWriter& w) {
                 w.key("my.key", static_cast<GgufType>(13));
                 w.keys().fixed(std::uint64_t{0});
             });
         }},
        {"keys: duplicate key", false, kAll, "the key 'a' twice",
         [] {
             return file([](GgufWriter& w) {
                 w.u32("a", 1);
                 w.u32("b", 1);
                 w.f32("a", 1);
             });
         }},
        {"keys: bad alignment value", false, kAll, "general.alignment is 13",
         [] { return file([](GgufWriter& w) { w.u32("general.alignment", 13); }); }},
        {"keys: bad alignment type", false, kAll, "general.alignment is of type i32",
         [] { return file([](GgufWriter& w) { w.i32("general.alignment", 32); }); }},
        {"keys: success", true, kAll, "", [] { return file(writeEveryKindOfKey); }},

        {"tensors: bad name length", false, kHeader, "name of tensor 1 of 1 has 64 bytes",
         [] { return oneTensor({1}, 0, 0, std::string(64, 'n')); }},
        {"tensors: bad number of dimensions", false, kHeader, "'my_tensor' has 5 dimensions",
         [] {
             return oneTensor({1, 1, 1, 1, 1}, 0);
         }},
        {"tensors: bad shape", false, kHeader, "'my_tensor' has the dimensions",
         [] { return oneTensor({kAllOnes}, 0); }},
        {"tensors: too many elements", false, kHeader, "'my_tensor' has the dimensions",
         [] {
             return oneTensor({4 * (std::uint64_t{1} << 31), 4 * (std::uint64_t{1} << 31)}, 0);
         }},
        {"tensors: too many bytes", false, kHeader, "'my_tensor' has the dimensions",
         [] {
             return oneTensor({std::uint64_t{1} << 31, std::uint64_t{1} << 31}, 27);
         }},
        {"tensors: bad type", false, kHeader, "'my_tensor' has the type number 43", [] { return oneTensor({1}, 43); }},
        {"tensors: bad offset", false, kHeader, "'my_tensor' is said to begin",
         [] { return oneTensor({1}, 0, kAllOnes); }},
        {"tensors: duplicate name", false, kHeader, "the tensor 'my_tensor_0' twice",
         [] { return tensorHeader([](GgufWriter&, Tensors& t) { t.names[7] = t.names[0]; }); }},
        {"tensors: bad alignment", false, kHeader, "general.alignment is 13",
         [] { return tensorHeader([](GgufWriter& w, Tensors&) { writeAlignment(w, 13); }); }},
        {"tensors: inconsistent alignment", false, kHeader, "(alignment 32)",
         [] { return tensorHeader([](GgufWriter& w, Tensors&) { w.alignment = 1; }); }},
        {"tensors: zero dimension", true, kAll, "",
         [] {
             return oneTensor({32, 0}, 8);
         }},
        {"tensors: success", true, kHeader, "", [] { return tensorHeader([](GgufWriter&, Tensors&) {}); }},
        {"tensors: custom alignment", true, kHeader, "",
         [] { return tensorHeader([](GgufWriter& w, Tensors&) { writeAlignment(w, 1); }); }},

        {"data: too short", false, kAll, "'my_tensor_42' ends at byte",
         [] {
             GgufWriter w;
             write(w, everyKindOfTensor());
             Bytes bytes = w.header();
             const std::size_t whole = bytes.size() + w.dataBytesWithoutLastPadding();
             bytes = w.file();
             bytes.resize(whole - 1);
             return bytes;
         }},
        {"data: bad alignment", false, kAll, "general.alignment is 13",
         [] {
             return file([](GgufWriter& w) {
                 writeAlignment(w, 13);
                 write(w, everyKindOfTensor());
             });
         }},
        {"data: inconsistent alignment", false, kAll, "(alignment 32)",
         [] {
             return file([](GgufWriter& w) {
                 w.alignment = 1;
                 write(w, everyKindOfTensor());
             });
         }},
        {"data: size overflow", false, kAll, "file is not complete: tensor 'a'",
         [] {
             return file([](GgufWriter& w) {
                 const std::uint64_t huge = 0x7FFF'FFFF'FFFF'FFC0;
                 w.tensorAt("a", {huge}, 24, 0);
                 w.tensorAt("b", {huge}, 24, huge);
             });
         }},
        {"data: success", true, kAll, "", [] { return file([](GgufWriter& w) { write(w, everyKindOfTensor()); }); }},
        {"data: custom alignment", true, kAll, "",
         [] {
             return file([](GgufWriter& w) {
                 writeAlignment(w, 1);
                 write(w, everyKindOfTensor());
             });
         }},
    };
}

TEST(GgufKinds, acceptsTheSevenRightOnesAndNamesTheFaultOfTheTwentySixWrongOnes) {
    const auto all = kinds();
    ASSERT_EQ(all.size(), 33u);
    EXPECT_EQ(std::ranges::count(all, true, &Kind::good), 7);
    for (const Kind& kind : all) {
        const auto opened = GgufFile::fromBytes(kind.make(), "made.gguf", kind.parts);
        EXPECT_EQ(bool(opened), kind.good) << kind.name << ": " << (opened ? "accepted" : opened.error().message);
        if (opened)
            continue;
        EXPECT_EQ(opened.error().kind, ErrorKind::Refused) << kind.name;
        EXPECT_EQ(opened.error().message.find("made.gguf: "), 0u) << opened.error().message;
        EXPECT_NE(opened.error().message.find(kind.says), std::string::npos)
            << kind.name << ": " << opened.error().message;
    }
}

TEST(GgufKinds, aWrongHeaderIsAlsoRefusedWhenItsDataAreAskedFor) {
    for (const Kind& kind : kinds())
        if (!kind.good) {
            EXPECT_FALSE(GgufFile::fromBytes(kind.make(), "made.gguf", GgufParts::HeaderAndData)) << kind.name;
        }
}

TEST(Gguf, readsEveryKindOfKeyBack) {
    for (const std::uint32_t version : {2u, 3u}) {
        GgufWriter w(version);
        writeEveryKindOfKey(w);
        const auto opened = GgufFile::fromBytes(w.file(), "made.gguf");
        ASSERT_TRUE(opened) << opened.error().message;
        const GgufFile& f = *opened;
        EXPECT_EQ(f.version(), version);
        EXPECT_EQ(f.entries().size(), kKeys);
        EXPECT_EQ(f.count("my.u8"), 200u);
        EXPECT_EQ(f.count("my.u16"), 60000u);
        EXPECT_EQ(f.count("my.u32"), 4'000'000'000u);
        EXPECT_EQ(f.count("my.u64"), kAllOnes);
        EXPECT_EQ(std::get<std::int64_t>(f.find("my.i8")->value), -100);
        EXPECT_EQ(std::get<std::int64_t>(f.find("my.i16")->value), -30000);
        EXPECT_EQ(std::get<std::int64_t>(f.find("my.i32")->value), -2'000'000'000);
        EXPECT_EQ(std::get<std::int64_t>(f.find("my.i64")->value), std::numeric_limits<std::int64_t>::min());
        EXPECT_EQ(f.number("my.f32"), 0.5);
        EXPECT_EQ(f.number("my.f64"), 0.1);
        EXPECT_EQ(f.flag("my.bool"), true);
        EXPECT_EQ(f.text("my.text"), "text\xFF");
        EXPECT_EQ(f.integers("my.array.u8"), (std::vector<std::int64_t>{1, 255}));
        EXPECT_EQ(f.integers("my.array.i8"), (std::vector<std::int64_t>{-1, 127}));
        EXPECT_EQ(f.integers("my.array.u16"), (std::vector<std::int64_t>{65535}));
        EXPECT_EQ(f.integers("my.array.i16"), (std::vector<std::int64_t>{-32768}));
        EXPECT_EQ(f.integers("my.array.u32"), (std::vector<std::int64_t>{4'000'000'000}));
        EXPECT_EQ(f.integers("my.array.i32"), (std::vector<std::int64_t>{-5, 6}));
        EXPECT_EQ(f.integers("my.array.u64"), (std::vector<std::int64_t>{1}));
        EXPECT_EQ(f.integers("my.array.i64"), (std::vector<std::int64_t>{-1}));
        EXPECT_EQ(f.floats("my.array.f32"), (std::vector<float>{1.5f, -2.0f}));
        EXPECT_EQ(f.floats("my.array.empty"), std::vector<float>{});
        EXPECT_EQ(f.texts("my.array.text"), (std::vector<std::string_view>{"a", "", "c"}));
    }
}

TEST(Gguf, saysWhichKeyIsMissingOrOfTheWrongType) {
    GgufWriter w;
    writeEveryKindOfKey(w);
    w.f32("my.nan", std::numeric_limits<float>::quiet_NaN());
    w.array("my.array.huge", GgufType::U64, std::vector<std::uint64_t>{kAllOnes});
    const auto opened = GgufFile::fromBytes(w.file(), "made.gguf");
    ASSERT_TRUE(opened) << opened.error().message;
    const GgufFile& f = *opened;
    const auto says = [](const auto& result, std::string_view part) {
        ASSERT_FALSE(result);
        EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
    };
    says(f.count("my.absent"), "has no key 'my.absent'");
    says(f.count("my.i32"), "must not be negative");
    says(f.count("my.f32"), "'my.f32' is of type f32");
    says(f.number("my.u32"), "'my.u32' is of type u32");
    says(f.number("my.nan"), "not a finite number");
    says(f.flag("my.text"), "a bool is needed");
    says(f.text("my.bool"), "a string is needed");
    says(f.texts("my.array.u8"), "an array of u8");
    says(f.texts("my.text"), "of type string");
    says(f.floats("my.array.f64"), "an array of f64");
    says(f.integers("my.array.f32"), "an array of f32");
    says(f.integers("my.array.huge"), "too large");
    EXPECT_EQ(f.countOr("my.absent", 7), 7u);
    EXPECT_EQ(f.numberOr("my.absent", 0.25), 0.25);
    EXPECT_EQ(f.flagOr("my.absent", true), true);
    EXPECT_EQ(f.textOr("my.absent", "x"), "x");
    EXPECT_FALSE(f.countOr("my.text", 7)) << "a wrong type is no missing key";
}

TEST(Gguf, findsEveryTensorWithItsData) {
    for (const std::uint32_t alignment : {1u, 32u, 64u, 4096u}) {
        GgufWriter w;
        writeAlignment(w, alignment);
        const Tensors tensors = everyKindOfTensor();
        write(w, tensors);
        const auto opened = GgufFile::fromBytes(w.file(), "made.gguf");
        ASSERT_TRUE(opened) << opened.error().message;
        EXPECT_EQ(opened->alignment(), alignment);
        ASSERT_EQ(opened->tensors().size(), tensors.names.size());
        for (std::size_t i = 0; i < tensors.names.size(); ++i) {
            const GgufTensor* tensor = opened->tensor(tensors.names[i]);
            ASSERT_TRUE(tensor) << tensors.names[i];
            EXPECT_EQ(tensor->type->id, tensors.types[i]);
            EXPECT_EQ(tensor->dimensions, tensors.dims[i].size());
            for (std::size_t d = 0; d < tensors.dims[i].size(); ++d)
                EXPECT_EQ(tensor->dims[d], tensors.dims[i][d]);
            EXPECT_TRUE(std::ranges::equal(tensor->data, tensors.data[i])) << tensors.names[i];
        }
        EXPECT_EQ(opened->tensor("my_tensor_4"), nullptr) << "type 4 was removed from ggml";
    }
}

TEST(Gguf, headerAloneDoesNotMindMissingData) {
    GgufWriter w;
    write(w, everyKindOfTensor());
    const auto opened = GgufFile::fromBytes(w.header(), "made.gguf", GgufParts::HeaderOnly);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ(opened->tensors()[0].bytes, 4u);
    EXPECT_TRUE(opened->tensors()[0].data.empty());
}

// The last tensor of a file need not be padded.
TEST(Gguf, acceptsAFileWithoutItsLastPadding) {
    GgufWriter w;
    w.tensor("a", {3}, 0, Bytes(12));
    EXPECT_TRUE(GgufFile::fromBytes(withoutLast(w.file(), 20), "made.gguf"));
    EXPECT_FALSE(GgufFile::fromBytes(withoutLast(w.file(), 21), "made.gguf"));
}

TEST(Gguf, saysThatABigEndianFileHasTheWrongEndian) {
    const auto opened = GgufFile::fromBytes(GgufWriter(3u << 24).file(), "made.gguf");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("wrong endian"), std::string::npos) << opened.error().message;
}

TEST(Gguf, refusesArraysOfArraysAndLongKeys) {
    const auto nested = GgufFile::fromBytes(file([](GgufWriter& w) { w.array("a", GgufType::Array, 1); }), "made.gguf");
    ASSERT_FALSE(nested);
    EXPECT_NE(nested.error().message.find("holds arrays"), std::string::npos);
    EXPECT_TRUE(GgufFile::fromBytes(file([](GgufWriter& w) { w.u32(std::string(65'535, 'k'), 1); }), "made.gguf"));
    EXPECT_FALSE(GgufFile::fromBytes(file([](GgufWriter& w) { w.u32(std::string(65'536, 'k'), 1); }), "made.gguf"));
}

// ollama#17042: a small file that announces a huge array.
TEST(Gguf, refusesAHugeCountBeforeItAllocates) {
    for (const auto type : {GgufType::U8, GgufType::F64, GgufType::Text})
        for (const std::uint64_t count : {kAllOnes, kAllOnes / 8 + 1, std::uint64_t{1} << 40, std::uint64_t{100}}) {
            const auto opened =
                GgufFile::fromBytes(file([&](GgufWriter& w) { w.array("a.huge", type, count); }), "made.gguf");
            ASSERT_FALSE(opened);
            EXPECT_NE(opened.error().message.find("'a.huge' announces"), std::string::npos) << opened.error().message;
        }
}

// llama.cpp#18674, #26318: a dimension whose product with the stride wraps to something small.
TEST(Gguf, refusesDimensionsThatWrap) {
    for (const auto& dims : std::vector<std::vector<std::uint64_t>>{
             {(std::uint64_t{1} << 42) + 1, std::uint64_t{1} << 22},
             {std::uint64_t{1} << 32, std::uint64_t{1} << 32},
             {std::uint64_t{1} << 62, 4},
             {std::uint64_t{1} << 63},
             {kAllOnes - 31},
             {65536, 65536, 65536, 65536},
         })
        EXPECT_FALSE(GgufFile::fromBytes(oneTensor(dims, 0), "made.gguf")) << dims[0];
    // Near the top: the size fits, the size with its padding or its place does not.
    EXPECT_FALSE(GgufFile::fromBytes(oneTensor({0x7FFF'FFFF'FFFF'FFFF}, 24), "made.gguf"));
}

TEST(Gguf, refusesRowsThatAreNoWholeNumberOfGroups) {
    const auto opened = GgufFile::fromBytes(oneTensor({33}, 2), "made.gguf");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("'my_tensor' of type Q4_0 has rows of 33 values"), std::string::npos);
}

TEST(Gguf, escapesWhatAFileSaysInMessages) {
    const auto opened = GgufFile::fromBytes(oneTensor({33}, 2, 0, "a\n\x1B[31m\xFF"), "made.gguf");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("'a\\x0a\\x1b[31m\\xff'"), std::string::npos) << opened.error().message;
}

class GgufOnDisk : public ::testing::Test {
protected:
    void SetUp() override {
        m_folder = std::filesystem::path(::testing::TempDir()) / ("kvatlas_gguf_" + std::to_string(::getpid()));
        std::filesystem::create_directories(m_folder);
    }
    void TearDown() override { std::filesystem::remove_all(m_folder); }
    std::filesystem::path m_folder;
};

// llama.cpp#6885, jan#3521: a half-downloaded file.
TEST_F(GgufOnDisk, saysWhichTensorIsNotCompleteAndHowManyBytesAreMissing) {
    GgufWriter w;
    w.tensor("first", {64}, 0, Bytes(256));
    w.tensor("second", {64}, 0, Bytes(256));
    Bytes bytes = w.file();
    bytes.resize(bytes.size() - 100);
    writeFile(m_folder / "half.gguf", bytes);
    const auto opened = GgufFile::open(m_folder / "half.gguf");
    ASSERT_FALSE(opened);
    EXPECT_NE(opened.error().message.find("'second'"), std::string::npos) << opened.error().message;
    EXPECT_NE(opened.error().message.find("100 bytes of this tensor are missing"), std::string::npos)
        << opened.error().message;
}

TEST_F(GgufOnDisk, refusesWhatIsNoFileWithOneSentence) {
    const auto says = [&](const std::filesystem::path& path, std::string_view part) {
        const auto opened = GgufFile::open(path);
        ASSERT_FALSE(opened) << path;
        EXPECT_EQ(opened.error().message.find(path.string()), 0u);
        EXPECT_NE(opened.error().message.find(part), std::string::npos) << opened.error().message;
    };
    says(m_folder / "absent.gguf", "cannot be opened");
    says(m_folder, "is a folder");
    says("/dev/zero", "not a regular file");
    writeFile(m_folder / "empty.gguf", {});
    says(m_folder / "empty.gguf", "is empty");
    ASSERT_EQ(::mkfifo((m_folder / "pipe.gguf").c_str(), 0600), 0);
    says(m_folder / "pipe.gguf", "not a regular file");
}

TEST_F(GgufOnDisk, noticesThatAFileHasShrunk) {
    GgufWriter w;
    w.tensor("a", {64}, 0, Bytes(256));
    writeFile(m_folder / "model.gguf", w.file());
    const auto opened = GgufFile::open(m_folder / "model.gguf");
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_TRUE(opened->checkStillWhole());
    std::filesystem::resize_file(m_folder / "model.gguf", 100);
    const auto whole = opened->checkStillWhole();
    ASSERT_FALSE(whole);
    EXPECT_NE(whole.error().message.find("shorter"), std::string::npos);
}

} // namespace
