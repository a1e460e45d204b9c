// SPDX-License-Identifier: Apache-2.0
#include "app/cli/checks.h"
#include "app/cli/output.h"
#include "app/cli/verbs.h"
#include "app/model_finder.h"
#include "core/base/counted.h"
#include "core/model/model.h"
#include "kernels/shapes.h"

#include <CLI/CLI.hpp>

namespace kvatlas::app {

namespace {

struct InfoOptions {
    std::string model;
    bool json = false;
    bool find = false;
};

std::uint64_t kvBytesPerToken(const model::ModelConfig& config, kernels::StorageFormat format) {
    return config.kvValuesPerToken() * kernels::elementBytes(format);
}

Json infoJson(const model::Model& model, const std::string& sha256) {
    const auto& config = model.config();
    Json kvBytes = Json::object();
    for (const auto format : {kernels::StorageFormat::F16, kernels::StorageFormat::F32})
        kvBytes[std::string(kernels::nameOf(format))] = kvBytesPerToken(config, format);
    Json warnings = Json::array();
    for (const auto& warning : model.warnings())
        warnings.push_back(warning);
    return {{"name", config.name},
            {"architecture", config.architecture},
            {"parameters", model.parameters()},
            {"layers", config.layers},
            {"q_heads", config.queryHeads},
            {"kv_heads", config.kvHeads},
            {"head_dim", config.headDim},
            {"embedding", config.embedding},
            {"context_length", config.contextTokens},
            {"vocab_size", config.vocabulary},
            {"file_bytes", model.fileBytes()},
            {"weight_bytes", model.weightBytes()},
            {"sha256", sha256},
            {"kv_bytes_per_token", kvBytes},
            {"pre_tokenizer", model::nameOf(model.tokenizer().preTokenizer())},
            {"chat_template", model::nameOf(model.chatTemplate().family())},
            {"warnings", warnings}};
}

std::string infoText(const model::Model& model, const std::string& sha256) {
    const auto& config = model.config();
    const auto f16 = kvBytesPerToken(config, kernels::StorageFormat::F16);
    return listText({{"name", config.name},
                     {"architecture", config.architecture},
                     {"parameters", fmt::format("{:.1f} million", static_cast<double>(model.parameters()) / 1e6)},
                     {"layers", fmt::format("{}", config.layers)},
                     {"heads", fmt::format("{} query heads, {} KV heads, {} channels each", config.queryHeads,
                                           config.kvHeads, config.headDim)},
                     {"context", fmt::format("{} tokens", config.contextTokens)},
                     {"vocabulary", fmt::format("{} tokens", config.vocabulary)},
                     {"file", bytesText(static_cast<double>(model.fileBytes()))},
                     {"sha256", sha256},
                     {"KV-cache", fmt::format("{} bytes per token in f16; 1 block = 16 tokens = {}", f16,
                                              bytesText(static_cast<double>(f16 * 16)))},
                     {"chat template", model.chatTemplate().describe()}});
}

int describeModel(const InfoOptions& options) {
    const auto file = chooseModel(options.model);
    if (!file)
        return fail(file.error());
    const auto model = model::Model::open(*file);
    if (!model)
        return fail(model.error());
    for (const auto& warning : (*model)->warnings())
        say(warning);
    const auto sha256 = (*model)->sha256();
    if (!sha256)
        return fail(sha256.error());
    if (options.json)
        writeJson(infoJson(**model, *sha256));
    else
        writeData(infoText(**model, *sha256));
    return kExitOk;
}

Json searchJson(const ModelSearch& search) {
    Json out = {{"models", Json::array()}, {"places", Json::array()}, {"passed_over", Json::array()}};
    for (const auto& m : search.models)
        out["models"].push_back({{"file", m.file.string()},
                                 {"name", m.name},
                                 {"architecture", m.architecture},
                                 {"file_bytes", m.fileBytes},
                                 {"place", m.place}});
    for (const auto& p : search.places)
        out["places"].push_back({{"place", p.place},
                                 {"folder", p.folder.string()},
                                 {"exists", p.exists},
                                 {"complete", p.complete},
                                 {"models", p.models}});
    for (const auto& p : search.passedOver)
        out["passed_over"].push_back({{"file", p.file.string()}, {"reason", p.reason}});
    return out;
}

int listModels(bool json) {
    const auto search = findModels();
    if (json) {
        writeJson(searchJson(search));
        return kExitOk;
    }
    std::vector<std::vector<std::string>> rows{{"model", "size", "where", "file"}};
    for (const auto& m : search.models)
        rows.push_back({shortened(m.name, 40), bytesText(static_cast<double>(m.fileBytes)), m.place, m.file.string()});
    if (rows.size() > 1)
        writeData(tableText(rows));
    for (const auto& p : search.places)
        say(fmt::format("{}: {}: {}", p.place, p.folder.string(),
                        !p.exists ? "no such folder"
                                  : fmt::format("{}{}", counted(p.models, "model"),
                                                p.complete ? "" : ", too many files to see them all")));
    for (const auto& p : search.passedOver)
        say(fmt::format("passed over {}: {}", p.file.string(), p.reason));
    return kExitOk;
}

} // namespace

void addInfo(CLI::App& app, int& status) {
    auto options = std::make_shared<InfoOptions>();
    auto* verb = app.add_subcommand("info", "What a model file holds and what its KV-cache costs per token");
    auto* model = verb->add_option("model", options->model, "a .gguf file; without it the default model");
    model->check(notEmpty());
    verb->add_flag("--find", options->find, "list the models in the usual places instead")->excludes(model);
    verb->add_flag("--json", options->json, "one JSON object on stdout");
    verb->footer("Example: kvatlas-cli info --json model.gguf");
    verb->callback(
        [options, &status] { status = options->find ? listModels(options->json) : describeModel(*options); });
}

} // namespace kvatlas::app
