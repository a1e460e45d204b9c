// SPDX-License-Identifier: Apache-2.0
// JSON files that people write and strangers send: strategies, scenarios, requests. Plain values, any thread.
//
// Promise. parseStrictJson reads RFC 8259 and nothing else: no duplicate keys, no comments, no text behind the value,
// valid UTF-8, bounded size and depth, numbers the same in every locale. JsonFields then reads one object: unknown keys
// are refused with the nearest known one, wrong types and numbers out of range with a sentence that names the key.
// Errors: Refused. The first one stays; every read after it gives the fallback.
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas {

using Json = nlohmann::ordered_json;

struct JsonLimits {
    std::size_t maxBytes = std::size_t{4} << 20;
    std::size_t maxDepth = 16;
    std::size_t maxValues = 2'000'000;
};

// `what` begins the message: "four-chats.json: line 3, column 7: ...".
Result<Json> parseStrictJson(std::string_view text, std::string_view what, const JsonLimits& limits = {});

// Writes a value; strings that are not valid UTF-8 get U+FFFD. indent < 0: one line.
std::string jsonText(const Json& value, int indent = -1);

// The candidate nearest to `word` (Damerau-Levenshtein distance; a beginning of a candidate counts as near), when it is
// near enough to be meant; else nothing.
std::optional<std::string_view> nearestWord(std::string_view word, std::span<const std::string_view> candidates);

// `did you mean "x"?`, or an empty text.
std::string didYouMean(std::string_view word, std::span<const std::string_view> candidates);

// The value outlives it. One thread.
class JsonFields {
public:
    JsonFields(const Json& value, std::string where, std::span<const std::string_view> knownKeys);

    bool ok() const { return !m_error; }
    const std::optional<Error>& error() const { return m_error; }
    const std::string& where() const { return m_where; }

    // Null when the key is absent or a read failed before.
    const Json* find(std::string_view key) const;
    bool has(std::string_view key) const { return find(key) != nullptr; }

    std::uint64_t wholeNumber(std::string_view key, std::uint64_t fallback, std::uint64_t min, std::uint64_t max);
    std::int64_t signedNumber(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max);
    double number(std::string_view key, double fallback, double min, double max);
    bool flag(std::string_view key, bool fallback);
    std::string text(std::string_view key, std::string_view fallback, std::size_t maxBytes);
    // Index into `names` of the value; a value that is not one of them is refused with the nearest.
    std::size_t choice(std::string_view key, std::size_t fallback, std::span<const std::string_view> names);

    // Refuses: `WHERE: "key" is VALUE; it must be ...`, or, without a key, `WHERE: sentence`.
    void refuseValue(std::string_view key, std::string_view mustBe);
    void refuse(std::string sentence);
    void refuse(Error error);

private:
    const Json* m_value;
    std::string m_where;
    std::optional<Error> m_error;
};

} // namespace kvatlas
