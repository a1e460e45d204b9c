// SPDX-License-Identifier: Apache-2.0
#include "app/cli/output.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <unistd.h>

namespace kvatlas::app {

namespace {

bool isContinuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u;
}

std::size_t characters(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !isContinuation(c); }));
}

int writeError = 0; // errno of the first failed write to stdout

void noteWriteError() {
    if (writeError == 0)
        writeError = errno == 0 ? EIO : errno;
}

} // namespace

void writeData(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
        noteWriteError();
}

void writeJson(const Json& value) {
    writeData(jsonText(value) + "\n");
}

void say(std::string_view sentence) {
    const std::string line = fmt::format("kvatlas-cli: {}\n", withoutControls(std::string(sentence)));
    // A closed or full stderr changes nothing about the work: nobody is left to be told.
    [[maybe_unused]] const auto written = std::fwrite(line.data(), 1, line.size(), stderr);
}

int fail(const Error& error) {
    std::fflush(stdout);
    say(error.message);
    return exitStatusOf(error.kind);
}

bool dataIsLost() {
    return writeError != 0;
}

int finish(int status) {
    flushData();
    if (writeError == 0)
        return status;
    if (writeError != EPIPE)
        say("The output could not be written whole: is stdout closed, or the disk full?");
    return status == kExitOk ? kExitFailed : status;
}

bool stdoutIsTerminal() {
    return isatty(STDOUT_FILENO) == 1;
}

void flushData() {
    if (std::fflush(stdout) != 0)
        noteWriteError();
}

std::string tableText(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], characters(row[i]));
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) {
            const std::string padding(widths[i] - characters(row[i]), ' ');
            line += i == 0 ? fmt::format("{}{}", row[i], padding) : fmt::format("  {}{}", padding, row[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string listText(const std::vector<std::pair<std::string, std::string>>& rows) {
    std::size_t width = 0;
    for (const auto& [name, value] : rows)
        width = std::max(width, characters(name));
    std::string text;
    for (const auto& [name, value] : rows)
        text += fmt::format("{}{}{}\n", name, std::string(width - characters(name) + 2, ' '), value);
    return text;
}

std::string bytesText(double bytes) {
    constexpr std::array<std::string_view, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < kUnits.size(); ++unit)
        bytes /= 1024;
    return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string shortened(std::string_view text, std::size_t maxCharacters) {
    std::string line;
    std::size_t count = 0;
    for (const char c : text) {
        if (!isContinuation(c) && ++count > maxCharacters)
            return line + "…";
        line += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? ' ' : c;
    }
    return line;
}

std::string withoutControls(std::string text) {
    std::erase_if(text,
                  [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7F; });
    return text;
}

} // namespace kvatlas::app
