// SPDX-License-Identifier: Apache-2.0
#include "app/cli/checks.h"
#include "app/cli/output.h"
#include "app/cli/verbs.h"
#include "app/model_finder.h"
#include "core/model/model.h"

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>

namespace kvatlas::app {

namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20;

struct TokenizeOptions {
    std::string model;
    std::string text;
    bool textGiven = false;
    bool parseSpecial = false;
    bool jsonl = false;
    bool json = false;
};

Json tokensJson(const model::Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
    Json pieces = Json::array();
    for (const TokenId id : ids)
        pieces.push_back(std::string(tokenizer.piece(id)));
    return {{"ids", ids}, {"pieces", pieces}};
}

// One line of the input: {"text", "parse_special"}.
Result<Json> answerLine(const model::Tokenizer& tokenizer, std::string_view line, std::size_t number) {
    static constexpr std::array<std::string_view, 2> kKeys{"text", "parse_special"};
    const std::string where = fmt::format("input line {}", number);
    const auto value = parseStrictJson(line, where, {.maxBytes = kMaxLineBytes, .maxDepth = 2});
    if (!value)
        return tl::unexpected(value.error());
    JsonFields fields(*value, where, kKeys);
    if (fields.ok() && !fields.has("text"))
        fields.refuse("\"text\" is missing.");
    const std::string text = fields.text("text", "", kMaxLineBytes);
    const bool parseSpecial = fields.flag("parse_special", false);
    if (const auto& error = fields.error())
        return tl::unexpected(*error);
    return tokensJson(tokenizer, tokenizer.encode(text, parseSpecial));
}

// Reads up to and without '\n'; false at the end of the input. A longer line than the limit fails.
Result<bool> readLine(std::istream& in, std::string& line, std::size_t number) {
    line.clear();
    for (int c = in.get(); c != std::istream::traits_type::eof(); c = in.get()) {
        if (c == '\n')
            return true;
        if (line.size() == kMaxLineBytes)
            return makeError(ErrorKind::Refused, "input line {}: a line may have at most {} bytes.", number,
                             kMaxLineBytes);
        line.push_back(static_cast<char>(c));
    }
    return !line.empty();
}

int tokenizeLines(const model::Tokenizer& tokenizer) {
    std::string line;
    for (std::size_t number = 1;; ++number) {
        const auto more = readLine(std::cin, line, number);
        if (!more)
            return fail(more.error());
        if (!*more && std::ferror(stdin) != 0)
            return fail({ErrorKind::Failed, "stdin could not be read to its end."});
        if (!*more)
            return kExitOk;
        if (line.find_first_not_of(" \t\r") == std::string::npos)
            continue;
        const auto answer = answerLine(tokenizer, line, number);
        if (!answer)
            return fail(answer.error());
        writeJson(*answer);
        flushData();
    }
}

int tokenize(const TokenizeOptions& options) {
    if (options.jsonl == options.textGiven)
        return fail({ErrorKind::Usage, "tokenize takes a text, or --jsonl and lines on stdin."});
    const auto file = chooseModel(options.model);
    if (!file)
        return fail(file.error());
    const auto model = model::Model::open(*file);
    if (!model)
        return fail(model.error());
    for (const auto& warning : (*model)->warnings())
        say(warning);
    const auto& tokenizer = (*model)->tokenizer();
    if (options.jsonl)
        return tokenizeLines(tokenizer);
    const auto ids = tokenizer.encode(options.text, options.parseSpecial);
    if (options.json) {
        writeJson(tokensJson(tokenizer, ids));
        return kExitOk;
    }
    std::vector<std::vector<std::string>> rows{{"position", "id", "piece"}};
    for (std::size_t i = 0; i < ids.size(); ++i)
        rows.push_back(
            {fmt::format("{}", i), fmt::format("{}", ids[i]), jsonText(Json(std::string(tokenizer.piece(ids[i]))))});
    writeData(tableText(rows));
    return kExitOk;
}

} // namespace

void addTokenize(CLI::App& app, int& status) {
    auto options = std::make_shared<TokenizeOptions>();
    auto* verb = app.add_subcommand("tokenize", "Text to token ids");
    verb->add_option("--model", options->model, "a .gguf file; without it the default model")->check(notEmpty());
    auto* text = verb->add_option("text", options->text, "the text")->check(utf8());
    verb->add_flag("--parse-special", options->parseSpecial, "text that spells a control token becomes that token");
    verb->add_flag("--jsonl", options->jsonl,
                   "lines {\"text\", \"parse_special\"} in, lines {\"ids\", \"pieces\"} out");
    verb->add_flag("--json", options->json, "one JSON object on stdout");
    verb->footer("Example: echo '{\"text\": \"Hello\"}' | kvatlas-cli tokenize --model model.gguf --jsonl");
    verb->callback([options, text, &status] {
        options->textGiven = text->count() > 0;
        status = tokenize(*options);
    });
}

} // namespace kvatlas::app
