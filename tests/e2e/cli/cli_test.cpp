// SPDX-License-Identifier: Apache-2.0
// kvatlas-cli from outside, on a model that the test makes: words, exit statuses, JSON keys, signals, files.
#include "tests/e2e/cli/program.h"
#include "tests/support/tiny_llama.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sstream>
#include <sys/wait.h>
#include <thread>

namespace kvatlas::testing {
namespace {

class Cli : public ::testing::Test {
protected:
    static std::string makeModel(const Folder& folder, std::uint32_t contextTokens) {
        TinyLlama shape;
        shape.contextTokens = contextTokens;
        const Bytes bytes = tinyLlama(7, shape);
        return folder.write("tiny.gguf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }

    Folder m_folder;
    std::string m_model = makeModel(m_folder, 1 << 16);
};

std::set<std::string> keysOf(const nlohmann::json& object) {
    std::set<std::string> keys;
    for (const auto& [key, value] : object.items())
        keys.insert(key);
    return keys;
}

void expectKeys(const nlohmann::json& object, const std::vector<std::string>& wanted) {
    for (const auto& key : wanted)
        EXPECT_TRUE(object.contains(key)) << key << " is missing in " << object.dump();
}

// One sentence on stderr, nothing on stdout.
void expectRefusal(const Outcome& outcome, int status, std::string_view part) {
    EXPECT_EQ(outcome.status, status) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
}

TEST_F(Cli, theVersionIsOneLineWithNameVersionCommitAndCuda) {
    const auto outcome = runCli({"--version"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1);
    EXPECT_TRUE(outcome.out.starts_with("kvatlas-cli 0.")) << outcome.out;
    EXPECT_NE(outcome.out.find(", commit "), std::string::npos);
    EXPECT_NE(outcome.out.find(", CUDA no"), std::string::npos);
}

TEST_F(Cli, helpNamesTheExitStatusesAndEveryVerbHasAnExample) {
    const auto help = runCli({"--help"});
    EXPECT_EQ(help.status, 0);
    for (const char* part : {"Exit status", "130", "143", "info", "devices", "tokenize", "logits", "run", "session",
                             "strategies", "bench", "Example:"})
        EXPECT_NE(help.out.find(part), std::string::npos) << part;
    for (const char* verb : {"info", "devices", "tokenize", "logits", "run", "session", "strategies", "bench"}) {
        const auto own = runCli({verb, "--help"});
        EXPECT_EQ(own.status, 0);
        EXPECT_NE(own.out.find("Example"), std::string::npos) << verb;
        EXPECT_NE(own.out.find("kvatlas-cli"), std::string::npos) << verb;
    }
}

TEST_F(Cli, wrongWordsEndWithStatusTwo) {
    expectRefusal(runCli(Words{}), 2, "");
    expectRefusal(runCli({"infos"}), 2, "did you mean \"info\"?");
    expectRefusal(runCli({"info", "--jsn"}), 2, "--jsn");
    expectRefusal(runCli({"session"}), 2, "");
    expectRefusal(runCli({"run", "--model", m_model}), 2, "--prompt");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--scenario", "four-chats"}), 2,
                  "one of the two");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--threads", "0"}), 2, "--threads");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--backend", "abacus"}), 2,
                  "auto, cpu or reference");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--arithmetic", "integer"}), 2,
                  "not available yet");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--strategy", "paged-f61"}), 2, "did you mean");
    expectRefusal(runCli({"run", "--model", m_model, "--scenario", "for-chats"}), 2, "did you mean \"four-chats\"?");
    expectRefusal(runCli({"logits", "--model", m_model, "--ids", "1,,2"}), 2, "whole numbers with commas");
    expectRefusal(runCli({"logits", "--model", m_model, "--ids", "1,2", "--positions", "7"}), 2,
                  "the last position is 1");
    expectRefusal(runCli({"tokenize", "--model", m_model}), 2, "--jsonl");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "Why", "is", "it"}), 2, "is");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--record", "-"}), 2, "stdout");
    expectRefusal(runCli({"info", "--find", m_model}), 2, "--find");
    expectRefusal(runCli({"session", "check", ""}), 2, "empty");
}

TEST_F(Cli, aFileThatIsMissingEndsWithStatusThreeWhateverItHolds) {
    const std::string none = m_folder / "none.json";
    expectRefusal(runCli({"info", none}), 3, "check the path");
    expectRefusal(runCli({"session", "check", none}), 3, "check the path");
    expectRefusal(runCli({"run", "--model", m_model, "--scenario", none}), 3, "check the path");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--strategy", none}), 3, "check the path");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--strategy", "/dev/null"}), 3, "a device");
}

TEST_F(Cli, controlCharactersOfAPromptDoNotReachTheTerminal) {
    const auto run = runCli({"run", "--model", m_model, "--raw", "--prompt", "a\x01\x1b[31mred", "--max-tokens", "3"});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out.find('\x1b'), std::string::npos);
    EXPECT_EQ(run.out.find('\x01'), std::string::npos);
}

// A scenario says these of each of its requests.
TEST_F(Cli, whatIsSaidOfPromptsIsNotTakenSilentlyForAScenario) {
    for (const Words& flag : {Words{"--temperature", "1"}, Words{"--top-k", "5"}, Words{"--top-p", "0.5"},
                              Words{"--min-p", "0.5"}, Words{"--raw"}, Words{"--ignore-eos"}}) {
        Words words{"run", "--model", m_model, "--scenario", "four-chats"};
        words.insert(words.end(), flag.begin(), flag.end());
        expectRefusal(runCli(words), 2, "--prompt");
    }
}

TEST_F(Cli, textIsUtf8) {
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a\xff"}), 2, "UTF-8");
    expectRefusal(runCli({"logits", "--model", m_model, "--prompt", "\xc3"}), 2, "UTF-8");
    expectRefusal(runCli({"tokenize", "--model", m_model, "\xed\xa0\x80"}), 2, "UTF-8");
    expectRefusal(runCli(Call{.arguments = {"run", "--model", m_model, "--prompt", "-"},
                              .input = "a\xff",
                              .environment = {},
                              .output = {}}),
                  3, "UTF-8");
}

TEST_F(Cli, numbersAreDecimalFiniteAndInRange) {
    const Words run{"run", "--model", m_model, "--prompt", "a", "--max-tokens", "1"};
    for (const auto& [flag, value] : {std::pair{"--temperature", "nan"},
                                      {"--temperature", "inf"},
                                      {"--top-p", "nan"},
                                      {"--min-p", "-nan"},
                                      {"--seed", "-1"},
                                      {"--seed", "010"},
                                      {"--seed", "0x10"},
                                      {"--seed", "18446744073709551616"},
                                      {"--top-k", "4294967296"},
                                      {"--threads", "1.5"},
                                      {"--record", ""},
                                      {"--strategy", ""}}) {
        Words words = run;
        words.insert(words.end(), {flag, value});
        expectRefusal(runCli(words), 2, flag);
    }
    Words words = run;
    words.insert(words.end(), {"--seed", "18446744073709551615", "--temperature", "0.5"});
    EXPECT_EQ(runCli(words).status, 0);
}

TEST_F(Cli, closedStandardFilesChangeNoStatus) {
    const std::string program = "'" KVATLAS_CLI "' ";
    const auto shell = [](const std::string& line) { return WEXITSTATUS(std::system((line).c_str())); };
    EXPECT_EQ(shell(program + "infos 2>&-"), 2);
    EXPECT_EQ(shell(program + "infos 2>/dev/full"), 2);
    EXPECT_EQ(shell(program + "session check /nowhere 2>&-"), 3);
    EXPECT_EQ(shell(program + "run --model '" + m_model + "' --prompt - <&- 2>/dev/null"), 1);
    EXPECT_EQ(shell(program + "tokenize --model '" + m_model + "' --jsonl < / 2>/dev/null"), 1);
    const std::string session = m_folder / "closed.kvatlas";
    EXPECT_EQ(shell(program + "run --model '" + m_model + "' --prompt a --max-tokens 1 --record '" + session +
                    "' <&- >&- 2>&-"),
              1); // the report could not be written; the recording is whole
    EXPECT_EQ(runCli({"session", "check", session}).status, 0);
    EXPECT_EQ(shell(program + "session export --ndjson '" + session + "' 2>'" + (m_folder / "said") +
                    "' | head -c 1 >/dev/null"),
              0);
    EXPECT_EQ(shell("test ! -s '" + (m_folder / "said") + "'"), 0);
}

TEST_F(Cli, namesInsideAScenarioAreInputs) {
    const auto bad = m_folder.write("s.json", R"({"strategy": "paged-f61", "requests": [{"prompt": "a"}]})");
    expectRefusal(runCli({"run", "--model", m_model, "--scenario", bad}), 3, "did you mean");
    const auto lost = m_folder.write("m.json", R"({"model": "nowhere.gguf", "requests": [{"prompt": "a"}]})");
    expectRefusal(runCli({"run", "--scenario", lost}), 3, "nowhere.gguf");
}

TEST_F(Cli, badFilesEndWithStatusThreeAndOneSentence) {
    const auto junk = m_folder.write("junk.gguf", "this is no model");
    const auto empty = m_folder.write("empty.gguf", "");
    for (const auto& file : {junk, empty, m_folder / "missing.gguf", std::string("/dev/zero")}) {
        const auto outcome = runCli({"info", "--json", file});
        expectRefusal(outcome, 3, file);
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
    expectRefusal(runCli({"run", "--model", m_model, "--scenario", m_folder.write("s.json", "{\"requests\": [}")}), 3,
                  "s.json: line 1, column 15");
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--strategy",
                          m_folder.write("t.json", R"({"block_token": 4})")}),
                  3, "did you mean \"block_tokens\"?");
    expectRefusal(runCli({"session", "check", "--json", junk}), 3, junk);
    expectRefusal(runCli({"logits", "--model", m_model, "--ids", "999999"}), 3, "vocabulary");
}

TEST_F(Cli, infoHasTheKeysThatScriptsRelyOn) {
    const auto info = runCli({"info", "--json", m_model}).json();
    expectKeys(info, {"architecture", "parameters", "layers", "q_heads", "kv_heads", "head_dim", "context_length",
                      "vocab_size", "file_bytes", "sha256", "kv_bytes_per_token"});
    EXPECT_EQ(info["architecture"], "llama");
    EXPECT_EQ(info["layers"], 2);
    EXPECT_EQ(info["q_heads"], 4);
    EXPECT_EQ(info["kv_heads"], 2);
    EXPECT_EQ(info["head_dim"], 16);
    EXPECT_EQ(info["file_bytes"], std::filesystem::file_size(m_model));
    EXPECT_EQ(info["sha256"].get<std::string>().size(), 64u);
    EXPECT_EQ(info["kv_bytes_per_token"]["f16"], 2 * 2 * 2 * 16 * 2); // K and V, layers, KV heads, channels, bytes
}

TEST_F(Cli, devicesAndStrategiesSpeakJson) {
    const auto devices = runCli({"devices", "--json"}).json();
    EXPECT_EQ(devices["cuda"], false);
    EXPECT_EQ(devices["devices"][0]["backend"], "cpu");
    EXPECT_GE(devices["devices"][0]["cores"].get<int>(), 1);
    const auto strategies = runCli({"strategies", "--json"}).json();
    EXPECT_GE(strategies["strategies"].size(), 5u);
    const auto complete = runCli({"strategies", "--validate", m_folder.write("e.json", "{}"), "--json"}).json();
    EXPECT_EQ(complete["block_tokens"], 16);
    EXPECT_EQ(complete["eviction"], "none");
}

TEST_F(Cli, tokenizeAnswersLineByLine) {
    const auto outcome =
        runCli(Call{.arguments = {"tokenize", "--model", m_model, "--jsonl"},
                    .input = "{\"text\": \"hello\"}\n\n{\"text\": \"<|im_end|>\", \"parse_special\": true}\n"
                             "{\"text\": \"\", \"parse_special\": false}",
                    .environment = {},
                    .output = {}});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    std::istringstream lines(outcome.out);
    std::vector<nlohmann::json> answers;
    for (std::string line; std::getline(lines, line);)
        answers.push_back(nlohmann::json::parse(line));
    ASSERT_EQ(answers.size(), 3u);
    EXPECT_EQ(answers[0]["pieces"], nlohmann::json::array({"hello"}));
    EXPECT_EQ(answers[1]["ids"], nlohmann::json::array({2}));
    EXPECT_EQ(answers[2]["ids"], nlohmann::json::array());
    const auto bad = runCli(Call{.arguments = {"tokenize", "--model", m_model, "--jsonl"},
                                 .input = "{\"text\": \"a\"}\n{\"txt\": 1}\n",
                                 .environment = {},
                                 .output = {}});
    EXPECT_EQ(bad.status, 3);
    EXPECT_NE(bad.err.find("input line 2"), std::string::npos) << bad.err;
}

TEST_F(Cli, logitsHaveTheKeysAndAgreeBetweenBackends) {
    const Words words{"logits", "--model", m_model, "--ids", "4,5,6,7", "--positions", "0,3", "--top", "5", "--json"};
    const auto cpu = runCli(words).json();
    auto withReference = words;
    withReference.insert(withReference.end(), {"--backend", "reference"});
    const auto reference = runCli(withReference).json();
    expectKeys(cpu, {"backend", "positions"});
    ASSERT_EQ(cpu["positions"].size(), 2u);
    EXPECT_EQ(cpu["positions"][1]["position"], 3);
    ASSERT_EQ(cpu["positions"][1]["top"].size(), 5u);
    for (std::size_t p = 0; p < 2; ++p) {
        EXPECT_NEAR(cpu["positions"][p]["logsumexp"].get<double>(),
                    reference["positions"][p]["logsumexp"].get<double>(), 1e-4);
        EXPECT_EQ(cpu["positions"][p]["top"][0][0], reference["positions"][p]["top"][0][0]);
    }
    EXPECT_EQ(runCli({"logits", "--model", m_model, "--ids", "4,5,6,7", "--positions", "all", "--json"})
                  .json()["positions"]
                  .size(),
              4u);
}

TEST_F(Cli, runHasTheKeysThatScriptsRelyOn) {
    const auto outcome = runCli({"run", "--model", m_model, "--prompt", "hello", "--prompt", "the world", "--raw",
                                 "--ignore-eos", "--max-tokens", "9", "--seed", "3", "--threads", "1", "--json"});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto report = outcome.json();
    expectKeys(report, {"backend", "strategy", "requests", "steps", "tokens_per_second", "kv", "logits_hash"});
    expectKeys(report["tokens_per_second"], {"prefill", "decode"});
    expectKeys(report["kv"],
               {"block_tokens", "blocks_total", "bytes_capacity", "bytes_peak", "bytes_per_token", "waste_fraction"});
    ASSERT_EQ(report["requests"].size(), 2u);
    const auto& request = report["requests"][0];
    expectKeys(request, {"id", "prompt_tokens", "cached_tokens", "output_tokens", "token_ids", "text", "finish_reason",
                         "ttft_ms", "itl_ms_median", "preemptions", "logits_hash"});
    EXPECT_EQ(request["id"], 1);
    EXPECT_EQ(request["prompt_tokens"], 1);
    EXPECT_EQ(request["output_tokens"], 9);
    EXPECT_EQ(request["token_ids"].size(), 9u);
    EXPECT_EQ(report["kv"]["bytes_capacity"].get<std::uint64_t>(),
              report["kv"]["blocks_total"].get<std::uint64_t>() * report["kv"]["block_tokens"].get<std::uint64_t>() *
                  report["kv"]["bytes_per_token"].get<std::uint64_t>());
    EXPECT_EQ(report["steps"], 9);
    EXPECT_EQ(report["logits_hash"].get<std::string>().size(), 16u);
}

TEST_F(Cli, aHashDoesNotDependOnBatchChunkBlockLayoutOrThreads) {
    const auto hashes = [&](const Words& more) {
        Words words{"run", "--model", m_model, "--raw", "--ignore-eos", "--max-tokens", "20", "--json"};
        words.insert(words.end(), more.begin(), more.end());
        std::map<std::string, std::string> byTitle;
        const auto report = runCli(words).json();
        for (const auto& request : report["requests"])
            byTitle[request["title"]] = request["logits_hash"];
        return byTitle;
    };
    const std::string one = "hello the world and the system", two = "a string that is another one";
    const auto solo = hashes({"--prompt", one, "--threads", "1"});
    const auto odd = m_folder.write("odd.json", R"({"chunk_tokens": 7, "block_tokens": 4, "layout": "contiguous",
                                                    "reserve": "max_tokens", "batching": "static"})");
    const auto together = hashes({"--prompt", two, "--prompt", one, "--threads", "2", "--strategy", odd});
    ASSERT_EQ(solo.size(), 1u);
    EXPECT_EQ(together.at(one), solo.at(one));
    EXPECT_NE(together.at(two), solo.at(one));
}

TEST_F(Cli, aRequestThatCanNeverFitIsRefusedAndTheOthersRun) {
    const auto small = m_folder.write("small.json", R"({"pool_blocks": 4})"); // 64 tokens
    const auto outcome = runCli({"run", "--model", m_model, "--strategy", small, "--raw", "--prompt", "hello",
                                 "--prompt", std::string(300, 'z'), "--max-tokens", "5", "--ignore-eos", "--json"});
    EXPECT_EQ(outcome.status, 4) << outcome.err;
    const auto report = outcome.json();
    EXPECT_EQ(report["requests"][0]["output_tokens"], 5);
    EXPECT_EQ(report["requests"][1]["finish_reason"], "refused");
    const std::string detail = report["requests"][1]["detail"];
    EXPECT_NE(detail.find('4'), std::string::npos) << detail; // the blocks there are
    EXPECT_NE(outcome.err.find("request 2 was refused"), std::string::npos) << outcome.err;
}

TEST_F(Cli, anEmptyPromptAndOneLongerThanTheContextAreSaidBeforeRunning) {
    const auto empty = runCli({"run", "--model", m_model, "--raw", "--prompt", ""});
    EXPECT_EQ(empty.status, 4);
    EXPECT_NE(empty.err.find("nothing to run"), std::string::npos) << empty.err;
    const auto tight = m_folder.write("tight.json", R"({"max_model_len": 100})");
    const auto tooLong =
        runCli({"run", "--model", m_model, "--raw", "--prompt", std::string(301, 'z'), "--strategy", tight});
    EXPECT_EQ(tooLong.status, 4);
    EXPECT_NE(tooLong.err.find("301 tokens"), std::string::npos) << tooLong.err;
    EXPECT_NE(tooLong.err.find("100"), std::string::npos) << tooLong.err;
}

TEST_F(Cli, memoryThatHoldsNoBlockEndsWithStatusFour) {
    const auto none = m_folder.write("none.json", R"({"kv_memory": "1B"})");
    const auto file = m_folder / "none.kvatlas";
    expectRefusal(runCli({"run", "--model", m_model, "--prompt", "a", "--strategy", none, "--record", file}), 4,
                  "kv_memory");
    EXPECT_FALSE(std::filesystem::exists(file)); // no empty session is left behind
}

TEST_F(Cli, whatIsRecordedChecksAndIsNeverOverwritten) {
    const auto file = m_folder / "run.kvatlas";
    const Words words{"run",          "--model", m_model,        "--raw",  "--prompt", "hello",
                      "--max-tokens", "12",      "--ignore-eos", "--json", "--record", file};
    const auto report = runCli(words).json();
    const auto check = runCli({"session", "check", "--json", file});
    EXPECT_EQ(check.status, 0) << check.err;
    EXPECT_EQ(keysOf(check.json()),
              (std::set<std::string>{"ok", "schema", "events", "steps", "keyframes", "ended_cleanly", "damaged"}));
    EXPECT_EQ(check.json()["ok"], true);
    EXPECT_EQ(check.json()["ended_cleanly"], true);
    EXPECT_EQ(check.json()["steps"], report["steps"]);
    expectKeys(runCli({"session", "info", "--json", file}).json(),
               {"ok", "schema", "events", "steps", "keyframes", "ended_cleanly", "damaged"});

    const auto before = std::filesystem::last_write_time(file);
    const auto again = runCli(words);
    EXPECT_NE(again.status, 0);
    EXPECT_NE(again.err.find("run.kvatlas"), std::string::npos) << again.err;
    EXPECT_EQ(std::filesystem::last_write_time(file), before);

    const auto csv = runCli({"session", "export", "--steps", file});
    EXPECT_EQ(csv.status, 0) << csv.err;
    EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), report["steps"].get<int>() + 1);
    expectRefusal(runCli({"session", "export", "--steps", "--out", file, file}), 3, "choose another name");
    const auto rescued = m_folder / "rescued.kvatlas";
    EXPECT_EQ(runCli({"session", "salvage", file, rescued, "--json"}).json()["steps"], report["steps"]);
    EXPECT_EQ(runCli({"session", "check", "--json", rescued}).json()["ok"], true);
}

TEST_F(Cli, aDamagedSessionIsNamedAndEndsWithStatusThree) {
    const auto file = m_folder / "run.kvatlas";
    ASSERT_EQ(runCli({"run", "--model", m_model, "--raw", "--prompt", "hello", "--max-tokens", "300", "--ignore-eos",
                      "--record", file})
                  .status,
              0);
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = std::filesystem::file_size(file);
    const std::string noise(512, '\x5a');
    for (std::uintmax_t at = size / 2; at + noise.size() < size; at += 4096) { // every page of the second half
        bytes.seekp(static_cast<std::streamoff>(at + 2048));
        bytes.write(noise.data(), static_cast<std::streamsize>(noise.size()));
    }
    bytes.close();
    const auto check = runCli({"session", "check", "--json", file});
    EXPECT_EQ(check.status, 3);
    if (!check.out.empty()) { // the damage may be where the file cannot be opened at all
        EXPECT_EQ(check.json()["ok"], false);
        EXPECT_FALSE(check.json()["damaged"].empty());
    }
    EXPECT_NE(check.err, "");
}

// Long enough that a signal comes in the middle of it on any machine.
class CliSignals : public Cli, public ::testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(CliSignals, duringARunLeaveAValidSessionAndAReport) {
    const auto [signal, status] = GetParam();
    const auto file = m_folder / "cut.kvatlas";
    const auto roomy = m_folder.write("roomy.json", R"({"max_model_len": 65536})");
    Running running(Call{.arguments = {"run", "--model", m_model, "--raw", "--prompt", "hello", "--ignore-eos",
                                       "--max-tokens", "65000", "--strategy", roomy, "--record", file, "--json"},
                         .input = {},
                         .environment = {},
                         .output = {}});
    for (int i = 0; i < 600 && !std::filesystem::exists(file); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    running.signal(signal);
    const auto outcome = running.wait();
    EXPECT_EQ(outcome.status, status) << outcome.err;
    const auto report = outcome.json();
    EXPECT_EQ(report["requests"][0]["finish_reason"], "cancelled");
    EXPECT_LT(report["steps"].get<int>(), 65000);
    const auto check = runCli({"session", "check", "--json", file});
    EXPECT_EQ(check.status, 0) << check.err;
    EXPECT_EQ(check.json()["ended_cleanly"], true);
    EXPECT_EQ(check.json()["steps"], report["steps"]);
    EXPECT_FALSE(std::filesystem::exists(file + "-wal"));
}

INSTANTIATE_TEST_SUITE_P(, CliSignals,
                         ::testing::Values(std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}, std::pair{SIGHUP, 129}),
                         [](const auto& parameter) { return std::string(sigabbrev_np(parameter.param.first)); });

TEST_F(Cli, whatIsWaitingForAnArrivalIsInterruptedToo) {
    const auto scenario = m_folder.write("late.json", R"({"arrival": "seconds", "requests": [
        {"prompt": "hello", "raw": true, "max_tokens": 3, "at": 0}, {"prompt": "a", "raw": true, "at": 100000}]})");
    Running running(Call{.arguments = {"run", "--model", m_model, "--scenario", scenario, "--json"},
                         .input = {},
                         .environment = {},
                         .output = {}});
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    running.signal(SIGINT);
    const auto outcome = running.wait();
    EXPECT_EQ(outcome.status, 130) << outcome.err;
    EXPECT_EQ(outcome.json()["requests"].size(), 1u);
}

TEST_F(Cli, aFullDiskUnderStdoutIsAFailureAndAReaderThatGoesAwayKillsNothing) {
    const auto full =
        runCli(Call{.arguments = {"info", "--json", m_model}, .input = {}, .environment = {}, .output = "/dev/full"});
    EXPECT_EQ(full.status, 1);
    EXPECT_NE(full.err.find("could not be written"), std::string::npos) << full.err;
    Running running(Call{.arguments = {"tokenize", "--model", m_model, "--jsonl"},
                         .input = "{\"text\": \"hello\"}\n",
                         .environment = {},
                         .output = {}});
    running.closeOutput();
    EXPECT_EQ(running.wait().status, 1); // not 141: SIGPIPE is ignored
}

TEST_F(Cli, aGermanLocaleChangesNoByte) {
    const auto locales = m_folder / "locales";
    std::filesystem::create_directory(locales);
    const std::string make = "localedef -i de_DE -f UTF-8 '" + locales + "/de_DE.UTF-8' >/dev/null 2>&1";
    ASSERT_EQ(std::system(make.c_str()), 0) << "localedef cannot make de_DE (Debian package: locales)";
    const std::map<std::string, std::string> german{
        {"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}, {"LOCPATH", locales}};
    const auto strategy = m_folder.write("share.json", R"({"kv_memory": 0.25})");
    for (const Words& words :
         {Words{"info", "--json", m_model}, Words{"info", m_model},
          Words{"logits", "--model", m_model, "--ids", "4,5", "--json"},
          Words{"logits", "--model", m_model, "--ids", "4,5"}, Words{"strategies", "--validate", strategy, "--json"}}) {
        const auto plain = runCli(words);
        const auto translated = runCli(Call{.arguments = words, .input = {}, .environment = german, .output = {}});
        EXPECT_EQ(plain.status, 0) << plain.err;
        EXPECT_EQ(translated.out, plain.out);
    }
}

TEST_F(Cli, theDefaultModelIsFoundAndItsAbsenceIsExplained) {
    const std::map<std::string, std::string> bare{{"HOME", m_folder / "home"}, {"XDG_CACHE_HOME", m_folder / "cache"}};
    const auto missing = runCli(Call{.arguments = {"info"}, .input = {}, .environment = bare, .output = {}});
    expectRefusal(missing, 2, "--model FILE.gguf");
    EXPECT_NE(missing.err.find("scripts/run"), std::string::npos);

    const std::filesystem::path own = m_folder / "cache/kvatlas/models";
    std::filesystem::create_directories(own / "deeper");
    std::filesystem::copy_file(m_model, own / "tiny.gguf");
    std::filesystem::create_hard_link(own / "tiny.gguf", own / "deeper" / "again.gguf");
    m_folder.write("cache/kvatlas/models/broken.gguf", "GGUF");
    const auto taken = runCli(Call{.arguments = {"info", "--json"}, .input = {}, .environment = bare, .output = {}});
    EXPECT_EQ(taken.json()["sha256"], runCli({"info", "--json", m_model}).json()["sha256"]);
    const auto found =
        runCli(Call{.arguments = {"info", "--find", "--json"}, .input = {}, .environment = bare, .output = {}}).json();
    EXPECT_EQ(std::count_if(found["models"].begin(), found["models"].end(),
                            [](const auto& model) { return model["place"] == "KVAtlas"; }),
              1); // one file with two names is one model
    ASSERT_EQ(found["passed_over"].size(), 1u);
    EXPECT_NE(found["passed_over"][0]["file"].get<std::string>().find("broken.gguf"), std::string::npos);
    EXPECT_GE(found["places"].size(), 6u);
}

TEST_F(Cli, benchHasTheKeysThatScriptsRelyOn) {
    const auto bench = runCli({"bench", "--model", m_model, "--threads", "1", "--prompt", "8", "--generate", "4",
                               "--depth", "5", "--repeat", "2", "--json"})
                           .json();
    expectKeys(bench, {"prefill_tokens_per_second", "decode_tokens_per_second", "raw_read_bytes_per_second",
                       "decode_bytes_per_token", "decode_fraction_of_read"});
    for (const auto& key : {"prefill_tokens_per_second", "decode_tokens_per_second", "decode_fraction_of_read"})
        EXPECT_GT(bench[key].get<double>(), 0) << key;
    // The weights once, and K and V of 5 tokens before the first of 4: 128 bytes each for 2 layers, 2 heads, f16.
    const double weights = runCli({"info", "--json", m_model}).json()["weight_bytes"].get<double>();
    EXPECT_NEAR(bench["decode_bytes_per_token"].get<double>(), weights, 0.2 * weights);
}

} // namespace
} // namespace kvatlas::testing
