// SPDX-License-Identifier: Apache-2.0
#include "core/base/strict_json.h"

#include <algorithm>
#include <limits>
#include <set>

namespace kvatlas {

namespace {

// Builds the value from nlohmann's SAX events, so that duplicate keys, depth and size are seen as they come.
class StrictBuilder {
public:
    explicit StrictBuilder(const JsonLimits& limits)
        : m_limits(limits) {}

    // NOLINTBEGIN(readability-identifier-naming): the names that nlohmann::json::sax_parse calls
    using number_integer_t = Json::number_integer_t;
    using number_unsigned_t = Json::number_unsigned_t;
    using number_float_t = Json::number_float_t;
    using string_t = Json::string_t;
    using binary_t = Json::binary_t;

    bool null() { return put(Json(nullptr)); }
    bool boolean(bool value) { return put(Json(value)); }
    bool number_integer(number_integer_t value) { return put(Json(value)); }
    bool number_unsigned(number_unsigned_t value) { return put(Json(value)); }
    bool number_float(number_float_t value, const string_t&) { return put(Json(value)); }
    bool string(string_t& value) { return put(Json(std::move(value))); }
    bool binary(binary_t&) { return fail("binary data is not JSON"); }
    bool start_object(std::size_t) { return open(Json::object()); }
    bool start_array(std::size_t) { return open(Json::array()); }
    bool end_object() { return close(); }
    bool end_array() { return close(); }
    bool key(string_t& key) {
        if (!m_open.back().keys.insert(key).second)
            return fail(fmt::format("the key \"{}\" stands there twice", shortened(key)));
        m_open.back().key = std::move(key);
        return true;
    }
    bool parse_error(std::size_t position, const std::string& token, const nlohmann::detail::exception& why) {
        constexpr int kNumberOutOfRange = 406; // nlohmann's id
        m_errorAt = position;
        if (why.id == kNumberOutOfRange)
            return fail(fmt::format("the number {} is too large", shortened(token)));
        return fail("this is not JSON");
    }
    // NOLINTEND(readability-identifier-naming)

    const std::string& error() const { return m_error; }
    std::optional<std::size_t> errorAt() const { return m_errorAt; }
    Json take() { return std::move(m_root); }

private:
    struct Open {
        Json value;
        std::string key;            // where the value belongs in its parent object is the parent's key
        std::set<std::string> keys; // of this object so far
    };

    static std::string shortened(const std::string& text) {
        return text.size() <= 40 ? text : text.substr(0, 40) + "...";
    }

    bool fail(std::string sentence) {
        if (m_error.empty())
            m_error = std::move(sentence);
        return false;
    }
    bool counted() {
        if (++m_values > m_limits.maxValues)
            return fail(fmt::format("there are more than {} values", m_limits.maxValues));
        return true;
    }
    bool put(Json value) { return counted() && place(std::move(value)); }
    bool place(Json value) {
        if (m_open.empty())
            m_root = std::move(value);
        else if (Open& parent = m_open.back(); parent.value.is_array())
            parent.value.push_back(std::move(value));
        else // not operator[], whose search would make a large object quadratic: the keys are known to differ
            parent.value.get_ref<Json::object_t&>().emplace_back(std::move(parent.key), std::move(value));
        return true;
    }
    bool open(Json value) {
        if (m_open.size() >= m_limits.maxDepth)
            return fail(fmt::format("values are nested deeper than {}", m_limits.maxDepth));
        if (!counted())
            return false;
        m_open.push_back({std::move(value), {}, {}});
        return true;
    }
    bool close() {
        Json value = std::move(m_open.back().value);
        m_open.pop_back();
        return place(std::move(value));
    }

    const JsonLimits& m_limits;
    std::vector<Open> m_open;
    Json m_root;
    std::size_t m_values = 0;
    std::string m_error;
    std::optional<std::size_t> m_errorAt;
};

std::string placeOf(std::string_view text, std::size_t position) {
    const auto before = text.substr(0, std::min(position > 0 ? position - 1 : 0, text.size()));
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto lineStart = before.rfind('\n');
    const auto column = before.size() - (lineStart == std::string_view::npos ? 0 : lineStart + 1) + 1;
    return fmt::format("line {}, column {}: ", line, column);
}

std::string shown(const Json& value) {
    std::string text = jsonText(value);
    if (text.size() > 60) {
        std::size_t end = 57;
        while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0u) == 0x80u)
            --end;
        text = text.substr(0, end) + "...";
    }
    return text;
}

std::size_t editDistance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> beforeLast(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], beforeLast[j - 2] + 1);
        }
        std::swap(beforeLast, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

} // namespace

Result<Json> parseStrictJson(std::string_view text, std::string_view what, const JsonLimits& limits) {
    if (text.size() > limits.maxBytes)
        return makeError(ErrorKind::Refused, "{}: {} bytes are more than the {} that a file of this kind may have.",
                         what, text.size(), limits.maxBytes);
    if (const auto nul = text.find('\0'); nul != std::string_view::npos) // the parser would take it for the end
        return makeError(ErrorKind::Refused, "{}: {}a NUL byte, which no JSON text has; write the file again.", what,
                         placeOf(text, nul + 1));
    StrictBuilder builder(limits);
    if (Json::sax_parse(text.begin(), text.end(), &builder))
        return builder.take();
    const std::string place = builder.errorAt() ? placeOf(text, *builder.errorAt()) : "";
    return makeError(ErrorKind::Refused, "{}: {}{}.", what, place, builder.error());
}

std::string jsonText(const Json& value, int indent) {
    return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::optional<std::string_view> nearestWord(std::string_view word, std::span<const std::string_view> candidates) {
    constexpr std::size_t kMaxWordBytes = 64;
    if (word.size() > kMaxWordBytes)
        return std::nullopt;
    std::optional<std::string_view> best;
    std::size_t bestDistance = std::max<std::size_t>(2, word.size() / 2) + 1;
    for (const auto candidate : candidates) {
        constexpr std::size_t kMinPrefixBytes = 3;
        const bool prefix = word.size() >= kMinPrefixBytes && candidate.starts_with(word);
        const std::size_t distance = prefix ? 1 : editDistance(word, candidate);
        if (distance < bestDistance) {
            bestDistance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string didYouMean(std::string_view word, std::span<const std::string_view> candidates) {
    const auto nearest = nearestWord(word, candidates);
    return nearest ? fmt::format("did you mean \"{}\"?", *nearest) : std::string();
}

JsonFields::JsonFields(const Json& value, std::string where, std::span<const std::string_view> knownKeys)
    : m_value(&value)
    , m_where(std::move(where)) {
    if (!value.is_object()) {
        refuse(fmt::format("this must be an object {{...}}, not {}.", shown(value)));
        return;
    }
    for (const auto& [key, unused] : value.items()) {
        if (std::find(knownKeys.begin(), knownKeys.end(), key) != knownKeys.end())
            continue;
        std::string hint = didYouMean(key, knownKeys);
        if (hint.empty()) {
            hint = "known are";
            for (const auto known : knownKeys)
                hint += fmt::format("{} {}", known == knownKeys.front() ? "" : ",", known);
            hint += ".";
        }
        refuse(fmt::format("unknown key {}: {}", shown(Json(key)), hint));
        return;
    }
}

const Json* JsonFields::find(std::string_view key) const {
    if (m_error)
        return nullptr;
    const auto found = m_value->find(std::string(key));
    return found == m_value->end() ? nullptr : &*found;
}

std::uint64_t JsonFields::wholeNumber(std::string_view key, std::uint64_t fallback, std::uint64_t min,
                                      std::uint64_t max) {
    const Json* value = find(key);
    if (!value)
        return fallback;
    if (value->is_number_unsigned()) {
        if (const auto n = value->get<std::uint64_t>(); n >= min && n <= max)
            return n;
    }
    refuseValue(key, fmt::format("a whole number from {} to {}", min, max));
    return fallback;
}

std::int64_t JsonFields::signedNumber(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max) {
    const Json* value = find(key);
    if (!value)
        return fallback;
    const bool fits =
        value->is_number_integer() &&
        (!value->is_number_unsigned() ||
         value->get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    if (fits) {
        if (const auto n = value->get<std::int64_t>(); n >= min && n <= max)
            return n;
    }
    refuseValue(key, fmt::format("a whole number from {} to {}", min, max));
    return fallback;
}

double JsonFields::number(std::string_view key, double fallback, double min, double max) {
    const Json* value = find(key);
    if (!value)
        return fallback;
    if (value->is_number()) {
        if (const auto n = value->get<double>(); n >= min && n <= max)
            return n;
    }
    refuseValue(key, fmt::format("a number from {} to {}", min, max));
    return fallback;
}

bool JsonFields::flag(std::string_view key, bool fallback) {
    const Json* value = find(key);
    if (!value)
        return fallback;
    if (value->is_boolean())
        return value->get<bool>();
    refuseValue(key, "true or false");
    return fallback;
}

std::string JsonFields::text(std::string_view key, std::string_view fallback, std::size_t maxBytes) {
    const Json* value = find(key);
    if (!value)
        return std::string(fallback);
    if (value->is_string()) {
        if (const auto& text = value->get_ref<const std::string&>(); text.size() <= maxBytes)
            return text;
    }
    refuseValue(key, fmt::format("a text of at most {} bytes", maxBytes));
    return std::string(fallback);
}

std::size_t JsonFields::choice(std::string_view key, std::size_t fallback, std::span<const std::string_view> names) {
    const Json* value = find(key);
    if (!value)
        return fallback;
    std::string mustBe;
    for (std::size_t i = 0; i < names.size(); ++i)
        mustBe += fmt::format("{}\"{}\"", i == 0 ? "" : i + 1 == names.size() ? " or " : ", ", names[i]);
    if (value->is_string()) {
        const auto& text = value->get_ref<const std::string&>();
        const auto found = std::find(names.begin(), names.end(), text);
        if (found != names.end())
            return static_cast<std::size_t>(found - names.begin());
        if (const auto nearest = nearestWord(text, names); nearest && names.size() > 2)
            mustBe += fmt::format(" (did you mean \"{}\"?)", *nearest);
    }
    refuseValue(key, mustBe);
    return fallback;
}

void JsonFields::refuseValue(std::string_view key, std::string_view mustBe) {
    const Json* value = find(key);
    refuse(fmt::format("\"{}\" is {}; it must be {}.", key, value ? shown(*value) : "missing", mustBe));
}

void JsonFields::refuse(std::string sentence) {
    refuse(Error{ErrorKind::Refused, fmt::format("{}: {}", m_where, sentence)});
}

void JsonFields::refuse(Error error) {
    if (!m_error)
        m_error = std::move(error);
}

} // namespace kvatlas
