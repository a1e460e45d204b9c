// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an Error that can be shown to a user as it is. For failures that a user, a file or a machine
// can cause; our own mistakes are asserts. Any thread.
#pragma once

#include <fmt/format.h>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace kvatlas {

// What went wrong decides the exit status of the command line (README, "Exit status").
enum class ErrorKind {
    Failed,      // the machine or the work failed: exit 1
    Usage,       // the words of a call are off: exit 2
    Refused,     // an input (model, session, strategy, scenario) is not acceptable: exit 3
    OutOfMemory, // memory or blocks do not suffice: exit 4
};

struct Error {
    ErrorKind kind = ErrorKind::Failed;
    std::string message; // one sentence: what, where, what to do
};

template <class T> using Result = tl::expected<T, Error>;

template <class... Args>
tl::unexpected<Error> makeError(ErrorKind kind, fmt::format_string<Args...> text, Args&&... args) {
    return tl::unexpected<Error>(Error{kind, fmt::format(text, std::forward<Args>(args)...)});
}

} // namespace kvatlas
