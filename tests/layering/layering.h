// SPDX-License-Identifier: Apache-2.0
// The house rules that a program can check: which folder may include which, names, first lines, READMEs.
// Pure functions over a tree of texts, so that the rules are tried on small trees too. Any thread.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace kvatlas::layering {

// Path from the repository's root ("core/base/ids.h") -> the file's bytes.
using Tree = std::map<std::string, std::string>;

struct Violation {
    std::string file;
    int line = 0; // from 1; 0: the file or folder as a whole
    std::string rule;
};

// Every edge outside design section 1's table, Qt where it must not be, libraries outside their folder,
// includes that are not written from the root.
std::vector<Violation> checkIncludes(const Tree& tree);

// Forbidden words in names, file names that are not snake_case, hosting folders that the project does not use.
std::vector<Violation> checkNames(const Tree& tree);

// #pragma once in every header, except in name-inl.h, which is read once per SIMD target.
std::vector<Violation> checkGuards(const Tree& tree);

// The SPDX line first in every source, script and build file.
std::vector<Violation> checkLicences(const Tree& tree);

// Paths of a developer's machine in any file.
std::vector<Violation> checkMachinePaths(const Tree& tree);

// A README.md of at most 40 lines in every folder that holds sources of the product.
std::vector<Violation> checkReadmes(const Tree& tree);

// "file:line: rule", one a line.
std::string describe(const std::vector<Violation>& violations);

} // namespace kvatlas::layering
