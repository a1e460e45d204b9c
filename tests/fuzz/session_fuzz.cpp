// SPDX-License-Identifier: Apache-2.0
// Bytes as a session file: refused, or read to the last row, without changing the file. The first byte says what else
// lies there: bit 0: the second half of the bytes is the file's -wal.
#include "core/state/cache_state.h"
#include "sessions/reader.h"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

using namespace kvatlas;

namespace {

// In memory where the machine has /dev/shm. Gone with the process.
struct Folder {
    std::string path = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm/kvatlas-fuzz-XXXXXX" : "/tmp/kvatlas-fuzz-XXXXXX";
    Folder() {
        if (!::mkdtemp(path.data()))
            std::abort();
    }
    ~Folder() {
        for (const char* suffix : {"", "-wal", "-shm"})
            ::unlink((path + "/input" + suffix).c_str());
        ::rmdir(path.c_str());
    }
};

const std::string& folder() {
    static const Folder one;
    return one.path;
}

void write(const std::string& path, std::span<const std::uint8_t> bytes) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ::write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
        std::abort();
    ::close(file);
}

void fold(const source::StateAtAnswer& answer) {
    auto state = answer.keyframe.empty() ? Result<state::CacheState>(state::CacheState())
                                         : state::CacheState::decode(answer.keyframe);
    for (const trace::Event& event : answer.events)
        if (!state || !state->apply(event))
            return;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0 || size > (1u << 20))
        return 0;
    const std::string path = folder() + "/input";
    for (const char* suffix : {"", "-wal", "-shm"})
        ::unlink((path + suffix).c_str());
    const std::span bytes(data + 1, size - 1);
    const std::size_t split = (data[0] & 1) ? bytes.size() / 2 : bytes.size();
    write(path, bytes.first(split));
    if (data[0] & 1)
        write(path + "-wal", bytes.subspan(split));

    const auto reader = sessions::SessionReader::open(
        path, {.openLimit = std::chrono::milliseconds(2000), .queryLimit = std::chrono::milliseconds(2000)});
    if (!reader) {
        if (reader.error().message.empty())
            std::abort();
        return 0;
    }
    for (std::size_t i = 0; i < (*reader)->chunks().size() && i < 64; ++i)
        (void)(*reader)->chunkEvents(i);
    for (const Step step : {0u, 100u, 0xFFFF'FFFFu})
        if (const auto answer = (*reader)->stateAt(step))
            fold(*answer);
    (void)(*reader)->history(0, 0xFFFF'FFFF, 50);
    (void)(*reader)->requestText(RequestId(1));
    (void)(*reader)->pieces();
    return 0;
}
