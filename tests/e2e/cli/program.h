// SPDX-License-Identifier: Apache-2.0
// Runs kvatlas-cli as a user does: arguments, stdin, environment in; status, stdout, stderr out. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

namespace kvatlas::testing {

using Words = std::vector<std::string>;

struct Outcome {
    int status = -1; // as a shell shows it: 128 + signal for one that a signal ended
    std::string out, err;

    nlohmann::json json() const; // of stdout; null, and a failed expectation, where it is none
};

struct Call {
    Words arguments;
    std::string input;                              // stdin
    std::map<std::string, std::string> environment; // on top of ours
    std::string output;                             // a file to be stdout, such as /dev/full; empty: captured
};

Outcome runCli(const Call& call);
inline Outcome runCli(Words arguments) {
    return runCli(Call{.arguments = std::move(arguments), .input = {}, .environment = {}, .output = {}});
}

// A program that is still running.
class Running {
public:
    explicit Running(const Call& call);
    ~Running(); // kills it
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

    void signal(int number) const;
    void closeOutput(); // as a reader that has gone
    Outcome wait();     // at most two minutes, then it is killed

private:
    pid_t m_pid = -1;
    int m_in = -1, m_out = -1, m_err = -1;
    std::string m_input;
};

// A folder that is deleted with what is in it.
class Folder {
public:
    Folder();
    ~Folder();
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    std::string operator/(const std::string& name) const { return (m_path / name).string(); }
    std::string write(const std::string& name, std::string_view text) const; // returns the path

private:
    std::filesystem::path m_path;
};

} // namespace kvatlas::testing
