// SPDX-License-Identifier: Apache-2.0
// SQLite's C API, thinly: owners of handles, and failures as sentences for people. One thread per Database.
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sqlite3.h>
#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::sessions {

// What SQLite's result code (extended) means for the person whose file it is; one sentence. systemErrno: of the failed
// system call, 0 when unknown.
std::string sentenceFor(int code, const std::string& path, int systemErrno);

// Closed by its destructor. Statements must be gone before.
class Database {
public:
    // flags: SQLITE_OPEN_*. shownAs: what sentences call it, when `path` is an SQLite URI or a copy.
    static Result<Database> open(const std::string& path, int flags, const std::string& shownAs = {});

    sqlite3* handle() const { return m_handle.get(); }
    const std::string& path() const { return m_path; }
    bool isOpen() const { return m_handle != nullptr; }
    void close() { m_handle.reset(); }

    Result<void> exec(const std::string& sql);
    Error lastError() const; // of the newest failed call
    int lastCode() const;    // extended result code of the newest failed call

private:
    struct Close {
        void operator()(sqlite3* handle) const;
    };
    std::unique_ptr<sqlite3, Close> m_handle;
    std::string m_path;
};

class Statement {
public:
    static Result<Statement> prepare(Database& database, std::string_view sql);

    // Parameters count from 1, columns from 0. Text and blobs are not copied: they live until the next reset().
    Statement& bind(int index, std::int64_t value);
    Statement& bindNull(int index);
    Statement& bind(int index, double value);
    Statement& bind(int index, std::string_view value);
    Statement& bind(int index, std::span<const std::byte> value);

    int step(); // SQLITE_ROW, SQLITE_DONE or an error code
    void reset();
    Result<void> run(); // step to the end, then reset; for statements that give no rows

    std::int64_t integer(int column) const { return sqlite3_column_int64(m_handle.get(), column); }
    double real(int column) const { return sqlite3_column_double(m_handle.get(), column); }
    bool isNull(int column) const { return sqlite3_column_type(m_handle.get(), column) == SQLITE_NULL; }
    std::string text(int column) const;
    std::span<const std::byte> blob(int column) const; // until the next step or reset

    Error error() const;
    sqlite3_stmt* handle() const { return m_handle.get(); }

private:
    struct Finalize {
        void operator()(sqlite3_stmt* handle) const { sqlite3_finalize(handle); }
    };
    std::unique_ptr<sqlite3_stmt, Finalize> m_handle;
    std::string m_path;
};

} // namespace kvatlas::sessions
