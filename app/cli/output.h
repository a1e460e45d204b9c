// SPDX-License-Identifier: Apache-2.0
// What the command line says and how it ends: data on stdout, talk on stderr, one exit status per kind of error.
// Main thread. A reader that goes away (EPIPE) or a full disk under stdout ends the program with status 1 at finish().
#pragma once

#include "app/exit_status.h"
#include "core/base/result.h"
#include "core/base/strict_json.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::app {

void writeData(std::string_view text); // to stdout, as it is
void writeJson(const Json& value);     // one line
void say(std::string_view sentence);   // to stderr, "kvatlas-cli: sentence"
int fail(const Error& error);          // says it and gives its status
bool dataIsLost();                     // stdout could not be written: finish() says so
int finish(int status);                // flushes stdout; kExitFailed when it could not be written

bool stdoutIsTerminal();
void flushData(); // so that a streaming reader sees it now

// A table for people: columns as wide as their widest cell, the first left-aligned, the others right-aligned.
// rows[0] holds the heads. Cells are UTF-8 and counted by character.
std::string tableText(const std::vector<std::vector<std::string>>& rows);

// Two columns "name  value".
std::string listText(const std::vector<std::pair<std::string, std::string>>& rows);

std::string bytesText(double bytes);                                  // "64.0 MiB"
std::string shortened(std::string_view text, std::size_t characters); // one line, control characters as spaces

// A model's text must not move a terminal's cursor or change its colours: everything below space goes, but \n and \t.
std::string withoutControls(std::string text);

} // namespace kvatlas::app
