// SPDX-License-Identifier: Apache-2.0
// Files that misbehave raise signals that end a program without a word. Called once, first thing in main().
#pragma once

namespace kvatlas {

// How a program ends whose mapped file was cut short while it was read: an input was refused.
constexpr int kExitFileCutShort = 3;

// A file-size limit (SIGXFSZ) and a reader that went away (SIGPIPE) become errors of the write. A mapped file that was
// cut short while it was read (SIGBUS) ends the program with one sentence and kExitFileCutShort: there is nothing to
// return to. Committed recordings stay.
void guardFileSignals();

} // namespace kvatlas
