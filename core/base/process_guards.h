// SPDX-License-Identifier: Apache-2.0
// What a process needs before it touches a file. Both called once, first thing in main(), before any thread.
#pragma once

namespace kvatlas {

// How a program ends whose mapped file was cut short while it was read: an input was refused.
constexpr int kExitFileCutShort = 3;

// A file-size limit (SIGXFSZ) and a reader that went away (SIGPIPE) become errors of the write. A mapped file that was
// cut short while it was read (SIGBUS) ends the program with one sentence and kExitFileCutShort: there is nothing to
// return to. Committed recordings stay.
void guardFileSignals();

// Standard input, output and error that were closed by the caller are opened again, so that a file opened later does
// not take their place and receive what is written to them. Reading or writing them is an error as before.
void guardStandardFiles();

} // namespace kvatlas
