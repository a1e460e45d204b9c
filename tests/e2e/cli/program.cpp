// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/cli/program.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace kvatlas::testing {

namespace {

std::array<int, 2> makePipe() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0)
        throw std::runtime_error("pipe2 failed");
    return ends;
}

std::vector<std::string> environmentWith(const std::map<std::string, std::string>& more) {
    std::vector<std::string> all;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        if (!more.contains(std::string(text.substr(0, text.find('=')))))
            all.emplace_back(text);
    }
    for (const auto& [name, value] : more)
        all.push_back(name + "=" + value);
    return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> out;
    for (auto& text : texts)
        out.push_back(text.data());
    out.push_back(nullptr);
    return out;
}

void closeIfOpen(int& descriptor) {
    if (descriptor >= 0)
        close(descriptor);
    descriptor = -1;
}

} // namespace

nlohmann::json Outcome::json() const {
    auto value = nlohmann::json::parse(out, nullptr, false);
    EXPECT_FALSE(value.is_discarded()) << "stdout is no JSON: " << out << "\nstderr: " << err;
    return value.is_discarded() ? nlohmann::json() : value;
}

Running::Running(const Call& call)
    : m_input(call.input) {
    std::signal(SIGPIPE, SIG_IGN); // a program that ends without reading its input must not end us
    const auto in = makePipe(), out = makePipe(), err = makePipe();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    if (call.output.empty())
        posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    else
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, call.output.c_str(), O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, err[1], STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

    std::vector<std::string> words{KVATLAS_CLI};
    words.insert(words.end(), call.arguments.begin(), call.arguments.end());
    auto environment = environmentWith(call.environment);
    const int failed =
        posix_spawn(&m_pid, KVATLAS_CLI, &actions, &attributes, pointers(words).data(), pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    close(in[0]);
    close(out[1]);
    close(err[1]);
    m_in = in[1];
    m_out = out[0];
    m_err = err[0];
    if (failed != 0)
        throw std::runtime_error("cannot start " KVATLAS_CLI);
}

Running::~Running() {
    if (m_pid > 0) {
        kill(m_pid, SIGKILL);
        waitpid(m_pid, nullptr, 0);
    }
    closeIfOpen(m_in);
    closeIfOpen(m_out);
    closeIfOpen(m_err);
}

void Running::signal(int number) const {
    kill(m_pid, number);
}
void Running::closeOutput() {
    closeIfOpen(m_out);
}

Outcome Running::wait() {
    using Clock = std::chrono::steady_clock;
    const auto deadline = Clock::now() + std::chrono::minutes(10);
    Outcome outcome;
    std::size_t written = 0;
    if (m_input.empty())
        closeIfOpen(m_in);
    while ((m_out >= 0 || m_err >= 0) && Clock::now() < deadline) {
        std::array<pollfd, 3> wanted{{{m_out, POLLIN, 0}, {m_err, POLLIN, 0}, {m_in, POLLOUT, 0}}};
        poll(wanted.data(), wanted.size(), 1000);
        const auto read = [&](pollfd& from, int& descriptor, std::string& into) {
            if (descriptor < 0 || from.revents == 0)
                return;
            std::array<char, 65536> buffer{};
            const ssize_t n = ::read(descriptor, buffer.data(), buffer.size());
            if (n > 0)
                into.append(buffer.data(), static_cast<std::size_t>(n));
            else
                closeIfOpen(descriptor);
        };
        read(wanted[0], m_out, outcome.out);
        read(wanted[1], m_err, outcome.err);
        if (m_in >= 0 && wanted[2].revents != 0) {
            const ssize_t n = ::write(m_in, m_input.data() + written, m_input.size() - written);
            written += n > 0 ? static_cast<std::size_t>(n) : 0;
            if (n < 0 || written == m_input.size())
                closeIfOpen(m_in);
        }
    }
    if (Clock::now() >= deadline) {
        ADD_FAILURE() << "the program did not end within ten minutes";
        kill(m_pid, SIGKILL);
    }
    int status = 0;
    waitpid(m_pid, &status, 0);
    m_pid = -1;
    constexpr int kShellSignalBase = 128;
    outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : kShellSignalBase + WTERMSIG(status);
    return outcome;
}

Outcome runCli(const Call& call) {
    return Running(call).wait();
}

Folder::Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kvatlas-cli-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr)
        throw std::runtime_error("cannot make a temporary folder");
    m_path = pattern;
}

Folder::~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(m_path, ignored);
}

std::string Folder::write(const std::string& name, std::string_view text) const {
    const std::string path = *this / name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
}

} // namespace kvatlas::testing
