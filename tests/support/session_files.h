// SPDX-License-Identifier: Apache-2.0
// Session files for tests: a folder that goes away by itself, recordings of synthetic runs, and SQL on a file.
#pragma once

#include "core/state/cache_state.h"
#include "sessions/recorder.h"
#include "tests/support/synthetic_run.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <sqlite3.h>
#include <string>
#include <vector>

namespace kvatlas::test {

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "kvatlas-test-XXXXXX").string();
        m_path = ::mkdtemp(name.data()) ? name : std::string();
        std::filesystem::permissions(m_path, std::filesystem::perms(0755));
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        std::filesystem::remove_all(m_path, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    const std::string& path() const { return m_path; }
    std::string file(const std::string& name) const { return m_path + "/" + name; }

private:
    std::string m_path;
};

// Records a whole synthetic run, step by step as an engine would deliver it.
inline void record(const std::string& path, const SyntheticOptions& options) {
    sessions::RecorderOptions recording;
    recording.piece = SyntheticRun::piece;
    auto recorder = sessions::SessionRecorder::create(path, recording);
    ASSERT_TRUE(recorder) << recorder.error().message;
    SyntheticRun run(options);
    while (!run.done())
        (*recorder)->onEvents(run.nextStep());
    (*recorder)->onEnd();
    const auto stopped = (*recorder)->stop();
    ASSERT_TRUE(stopped) << stopped.error().message;
}

// The state hash after each step, as the generator itself computed it.
inline std::map<Step, std::uint64_t> hashesOf(const std::vector<trace::Event>& events) {
    std::map<Step, std::uint64_t> hashes;
    for (const trace::Event& event : events)
        if (const auto* ended = std::get_if<trace::StepEnded>(&event.body))
            hashes[event.step] = ended->stateHash;
    return hashes;
}

inline std::string bytesOf(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void writeBytes(const std::string& path, const std::string& bytes) {
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

// Runs SQL on a file as a stranger with the sqlite3 shell would; rows as text, columns joined by '|'.
inline std::vector<std::string> sql(const std::string& path, const std::string& statement) {
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    std::vector<std::string> rows;
    char* message = nullptr;
    const auto collect = [](void* out, int columns, char** values, char**) {
        std::string row;
        for (int i = 0; i < columns; ++i)
            row += (i ? "|" : "") + std::string(values[i] ? values[i] : "");
        static_cast<std::vector<std::string>*>(out)->push_back(std::move(row));
        return 0;
    };
    EXPECT_EQ(sqlite3_exec(database, statement.c_str(), collect, &rows, &message), SQLITE_OK)
        << statement << ": " << (message ? message : "");
    sqlite3_free(message);
    sqlite3_close(database);
    return rows;
}

} // namespace kvatlas::test
