// SPDX-License-Identifier: Apache-2.0
#include "core/strategy/strategy.h"

#include "core/strategy/byte_size.h"
#include "core/strategy/keys.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kvatlas::strategy {
namespace {

std::string refusalOf(std::string_view json) {
    const auto parsed = parse(json, "s.json");
    EXPECT_FALSE(parsed) << json;
    if (parsed)
        return {};
    EXPECT_EQ(parsed.error().kind, ErrorKind::Refused);
    return parsed.error().message;
}

void expectRefused(std::string_view json, std::string_view part) {
    const std::string message = refusalOf(json);
    EXPECT_NE(message.find(part), std::string::npos) << json << "\n  said: " << message << "\n  expected: " << part;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(Strategy, anEmptyObjectIsThePlainPagedF16Cache) {
    const auto parsed = parse("{}");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->layout, Layout::Paged);
    EXPECT_EQ(parsed->blockTokens, 16u);
    EXPECT_EQ(parsed->kFormat, kernels::StorageFormat::F16);
    EXPECT_EQ(parsed->vFormat, kernels::StorageFormat::F16);
    EXPECT_EQ(parsed->batching, Batching::Continuous);
    EXPECT_EQ(parsed->kvMemory.kind, KvMemory::Kind::Auto);
    EXPECT_EQ(*parsed, Strategy{});
}

TEST(Strategy, readsEveryKeyOfItsOwn) {
    const auto parsed = parse(R"({"version": 1, "name": "mine", "layout": "contiguous", "reserve": "max_tokens",
        "block_tokens": 8, "kv_memory": "3 KiB", "max_model_len": 100, "batching": "static", "max_sequences": 3,
        "chunk_tokens": 7, "schedule": "fcfs", "preemption": "recompute", "k_format": "f32", "v_format": "f16"})");
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(parsed->name, "mine");
    EXPECT_EQ(parsed->layout, Layout::Contiguous);
    EXPECT_EQ(parsed->reserve, Reserve::MaxTokens);
    EXPECT_EQ(parsed->blockTokens, 8u);
    EXPECT_EQ(parsed->kvMemory, (KvMemory{KvMemory::Kind::Bytes, 3072, 0}));
    EXPECT_EQ(parsed->maxModelLenTokens, 100u);
    EXPECT_EQ(parsed->batching, Batching::Static);
    EXPECT_EQ(parsed->maxSequences, 3u);
    EXPECT_EQ(parsed->chunkTokens, 7u);
    EXPECT_EQ(parsed->kFormat, kernels::StorageFormat::F32);
    EXPECT_EQ(parsed->vFormat, kernels::StorageFormat::F16);
}

TEST(Strategy, whatIsWrittenReadsBackEqual) {
    std::vector<Strategy> all(6);
    all[1].name = "\"quotes\" and ünïcode";
    all[2].kvMemory = {KvMemory::Kind::Bytes, 64 << 20, 0};
    all[3].kvMemory = {KvMemory::Kind::Share, 0, 0.1};
    all[4].poolBlocks = 4096;
    all[4].maxModelLenTokens = 333;
    all[5].layout = Layout::Contiguous;
    all[5].reserve = Reserve::MaxTokens;
    all[5].batching = Batching::Static;
    all[5].kFormat = kernels::StorageFormat::F32;
    all[5].kvMemory = {KvMemory::Kind::Bytes, 1, 0};
    for (const auto& strategy : all) {
        const auto again = parse(toJson(strategy));
        ASSERT_TRUE(again) << again.error().message;
        EXPECT_EQ(*again, strategy) << toJson(strategy);
    }
}

TEST(Strategy, writesEveryKnownKeyInOneOrder) {
    const auto written = nlohmann::ordered_json::parse(toJson(Strategy{}));
    EXPECT_EQ(written.size(), kAllKeys.size());
    for (const auto key : kAllKeys)
        EXPECT_TRUE(written.contains(std::string(key))) << key;
    EXPECT_EQ(written.begin().key(), "version");
    EXPECT_EQ(toJson(Strategy{}), toJson(*parse(toJson(Strategy{}))));
}

TEST(Strategy, namesTheNearestKeyForAnUnknownOne) {
    expectRefused(R"({"block_token": 16})", R"(unknown key "block_token": did you mean "block_tokens"?)");
    expectRefused(R"({"layuot": "paged"})", R"(did you mean "layout"?)");
    expectRefused(R"({"kformat": "f16"})", R"(did you mean "k_format"?)");
    expectRefused(R"({"maxsequences": 3})", R"(did you mean "max_sequences"?)");
    expectRefused(R"({"zzzzzzzzzzzzzzzzzzzzzzz": 3})", "known are version");
}

TEST(Strategy, saysWhatIsNotAvailableYet) {
    for (const char* json : {R"({"prefix_cache": true})",    R"({"rotate": true})",        R"({"group": 64})",
                             R"({"residual_tokens": 0})",    R"({"outliers": 0.02})",      R"({"rank": 8})",
                             R"({"keep_layers": [0]})",      R"({"eviction": "h2o"})",     R"({"sinks": 8})",
                             R"({"window": 512})",           R"({"budget": 0.5})",         R"({"heavy": 0.1})",
                             R"({"positions": "original"})", R"({"offload": "host"})",     R"({"host_memory": "1GiB"})",
                             R"({"disk_memory": "2GiB"})",   R"({"heads": "latent:192"})", R"({"heads": "mqa"})",
                             R"({"schedule": "priority"})",  R"({"preemption": "swap"})",  R"({"k_format": "int4"})",
                             R"({"v_format": "kivi2"})"})
        expectRefused(json, "is not available yet");
}

TEST(Strategy, takesThePlainValueOfAKeyThatIsNotAvailableYet) {
    const auto parsed = parse(R"({"prefix_cache": false, "eviction": "none", "sinks": 4, "budget": 0.20,
        "keep_layers": [], "heads": "native", "host_memory": "256MiB", "positions": "cache"})");
    EXPECT_TRUE(parsed) << parsed.error().message;
}

TEST(Strategy, tellsAnUnknownWordFromOneThatIsNotAvailableYet) {
    expectRefused(R"({"eviction": "h20"})", R"(did you mean "h2o"?)");
    expectRefused(R"({"k_format": "fp16"})", R"(did you mean "f16"?)");
    expectRefused(R"({"layout": "pages"})", R"(it must be "paged" or "contiguous")");
    expectRefused(R"({"heads": "latent:"})", R"("native", "mha", "mqa" or "latent:RANK")");
    expectRefused(R"({"prefix_cache": "yes"})", "of the kind of false");
}

TEST(Strategy, keepsEveryNumberInItsRange) {
    for (const char* json :
         {R"({"block_tokens": 0})", R"({"block_tokens": 1025})", R"({"block_tokens": -16})",
          R"({"block_tokens": 16.5})", R"({"block_tokens": 16.0})", R"({"block_tokens": "16"})",
          R"({"block_tokens": null})", R"({"block_tokens": 99999999999999999999999})", R"({"max_sequences": 0})",
          R"({"max_sequences": 4097})", R"({"chunk_tokens": 0})", R"({"chunk_tokens": 65537})", R"({"pool_blocks": 0})",
          R"({"pool_blocks": 67108864})", R"({"pool_blocks": "many"})", R"({"max_model_len": 0})",
          R"({"max_model_len": 16777217})", R"({"version": 0})"})
        expectRefused(json, "it must be");
    EXPECT_TRUE(parse(R"({"block_tokens": 1024, "max_sequences": 4096, "chunk_tokens": 65536, "pool_blocks": 67108863,
        "max_model_len": 16777216})"));
}

TEST(Strategy, refusesANewerVersionWithBothNumbers) {
    expectRefused(R"({"version": 2})", "version 2, and this program knows version 1");
}

TEST(Strategy, readsMemoryAsASizeOrAShareOnly) {
    EXPECT_EQ(parse(R"({"kv_memory": 1})")->kvMemory.share, 1.0);
    EXPECT_EQ(parse(R"({"kv_memory": 0.25})")->kvMemory.share, 0.25);
    for (const char* json :
         {R"({"kv_memory": 0})", R"({"kv_memory": 1.5})", R"({"kv_memory": -0.5})", R"({"kv_memory": true})"})
        expectRefused(json, "a share of the free memory");
    for (const char* json : {R"({"kv_memory": "64MB"})", R"({"kv_memory": "64"})", R"({"kv_memory": ""})",
                             R"({"kv_memory": "-1MiB"})", R"({"kv_memory": "0MiB"})", R"({"kv_memory": "64MiB "})"})
        expectRefused(json, "B, KiB, MiB or GiB");
    expectRefused(R"({"kv_memory": "18446744073709551615GiB"})", "smaller than");
    expectRefused(R"({"kv_memory": "99999999999999999999GiB"})", "a size like");
}

TEST(Strategy, refusesCombinationsThatMakeNoSense) {
    expectRefused(R"({"reserve": "max_tokens"})", "this layout is paged");
    expectRefused(R"({"kv_memory": "64MiB", "pool_blocks": 10})", "leave one of them out");
}

TEST(Strategy, survivesHostileText) {
    expectRefused("", "this is not JSON");
    expectRefused("[]", "must be an object");
    expectRefused("null", "must be an object");
    expectRefused("{} {}", "line 1, column 4: this is not JSON");
    expectRefused("{\"name\": \"a\",\n \"name\": \"b\"}", R"(the key "name" stands there twice)");
    expectRefused("{\n  \"layout\": paged }", "line 2, column 13");
    expectRefused("{\"name\": \"\xff\xfe\"}", "this is not JSON");
    expectRefused("{\"name\": \"a\\u0007b\"}", "without control characters");
    expectRefused("// c\n{}", "this is not JSON");
    expectRefused(R"({"keep_layers": [[[[[[]]]]]]})", "nested deeper");
    expectRefused(std::string(100'000, '['), "more than the 65536");
    expectRefused(std::string(60'000, '['), "nested deeper");
    expectRefused("{\"name\": \"" + std::string(60'000, 'x') + "\"}", "at most 200 bytes");
    expectRefused("{\"" + std::string(60'000, 'x') + "\": 1}", "unknown key");
    expectRefused(R"({"budget": 1e999})", "too large");
    EXPECT_LT(refusalOf("{\"" + std::string(60'000, 'x') + "\": 1}").size(), 1000u);
}

TEST(Strategy, describesItselfInOneLine) {
    Strategy s;
    s.kvMemory = {KvMemory::Kind::Bytes, 64 << 20, 0};
    EXPECT_EQ(describe(s), "paged, blocks of 16, f16, 64 MiB");
    EXPECT_EQ(describe(s, "63.9 MiB"), "paged, blocks of 16, f16, 63.9 MiB");
    s.layout = Layout::Contiguous;
    s.vFormat = kernels::StorageFormat::F32;
    s.batching = Batching::Static;
    EXPECT_EQ(describe(s),
              "contiguous (each reserves max_model_len), blocks of 16, K f16 and V f32, 64 MiB, static batching");
}

TEST(ByteSize, readsAndWritesTheUnits) {
    EXPECT_EQ(*bytesFromText("1B"), 1u);
    EXPECT_EQ(*bytesFromText("64 MiB"), 64u << 20);
    EXPECT_EQ(*bytesFromText("2GiB"), std::uint64_t{2} << 30);
    EXPECT_EQ(textFromBytes(64 << 20, ""), "64MiB");
    EXPECT_EQ(textFromBytes(360 << 10, " "), "360 KiB");
    EXPECT_EQ(textFromBytes(1023, ""), "1023B");
    for (const std::uint64_t bytes : {1ull, 1023ull, 1024ull, 1ull << 20, (1ull << 30) + 1, 1ull << 40})
        EXPECT_EQ(*bytesFromText(textFromBytes(bytes, "")), bytes);
}

} // namespace
} // namespace kvatlas::strategy
