// SPDX-License-Identifier: Apache-2.0
#include "core/base/process_guards.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdio>
#include <sys/mman.h>
#include <unistd.h>

namespace kvatlas {
namespace {

constexpr std::size_t kBytes = 1 << 16;

// The last byte of a mapped file, read after the file was cut to nothing.
char readBeyondTheEnd() {
    const int file = ::fileno(std::tmpfile());
    if (::ftruncate(file, kBytes) != 0)
        return 0;
    const auto* bytes = static_cast<const volatile char*>(::mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, file, 0));
    if (::ftruncate(file, 0) != 0)
        return 0;
    return bytes[kBytes - 1];
}

TEST(ProcessGuards, aMappedFileThatIsCutShortEndsTheProgramWithASentence) {
    EXPECT_EXIT(
        {
            guardFileSignals();
            readBeyondTheEnd();
        },
        testing::ExitedWithCode(kExitFileCutShort), "cut short");
}

TEST(ProcessGuards, aReaderThatWentAwayIsAnErrorOfTheWrite) {
    EXPECT_EXIT(
        {
            guardFileSignals();
            int ends[2];
            if (::pipe(ends) != 0)
                ::_exit(1);
            ::close(ends[0]);
            ::_exit(::write(ends[1], "x", 1) < 0 && errno == EPIPE ? 0 : 2);
        },
        testing::ExitedWithCode(0), "");
}

TEST(ProcessGuards, aFileOpenedLaterTakesNoPlaceOfAClosedStandardFile) {
    EXPECT_EXIT(
        {
            for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
                ::close(standard);
            guardStandardFiles();
            char byte = 'x';
            const bool deaf = ::write(STDERR_FILENO, &byte, 1) < 0 && ::read(STDIN_FILENO, &byte, 1) < 0;
            ::_exit(deaf && ::fileno(std::tmpfile()) > STDERR_FILENO ? 0 : 1);
        },
        testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace kvatlas
