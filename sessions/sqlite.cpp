// SPDX-License-Identifier: Apache-2.0
#include "sessions/sqlite.h"

#include <cerrno>
#include <cstring>

namespace kvatlas::sessions {

namespace {

ErrorKind kindFor(int code) {
    switch (code & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_TOOBIG:
    case SQLITE_FORMAT:
        return ErrorKind::Refused;
    case SQLITE_NOMEM:
        return ErrorKind::OutOfMemory;
    default:
        return ErrorKind::Failed;
    }
}

} // namespace

std::string sentenceFor(int code, const std::string& path, int systemErrno) {
    const int kind = code & 0xFF;
    const bool system = kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN;
    if (kind == SQLITE_FULL || (system && (systemErrno == ENOSPC || systemErrno == EDQUOT)))
        return fmt::format("The disk that holds '{}' is full; free some space.", path);
    if (code == SQLITE_IOERR_WRITE && (systemErrno == EFBIG || systemErrno == 0))
        return fmt::format("'{}' cannot grow: the file-size limit of this process or the disk's space is used up; free "
                           "space or raise the limit (ulimit -f).",
                           path);
    switch (kind) {
    case SQLITE_READONLY:
        return fmt::format("'{}' cannot be written; choose a folder that you may write to.", path);
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return fmt::format("'{}' may not be accessed; check its permissions.", path);
    case SQLITE_CANTOPEN:
        return systemErrno != 0 ? fmt::format("'{}' cannot be opened ({}).", path, std::strerror(systemErrno))
                                : fmt::format("'{}' cannot be opened.", path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fmt::format("'{}' is in use by another program; close it there first.", path);
    case SQLITE_CORRUPT:
        return fmt::format("'{}' is damaged; 'kvatlas-cli session salvage' writes what can be read to a new file.",
                           path);
    case SQLITE_NOTADB:
        return fmt::format("'{}' is not a KVAtlas session: it is no SQLite database.", path);
    case SQLITE_INTERRUPT:
        return fmt::format("Reading '{}' was stopped: it took too long or was cancelled.", path);
    case SQLITE_NOMEM:
        return fmt::format("Memory does not suffice to read or write '{}'.", path);
    case SQLITE_TOOBIG:
        return fmt::format("'{}' holds an entry that is larger than KVAtlas ever writes.", path);
    case SQLITE_IOERR:
        return systemErrno != 0
                   ? fmt::format("'{}' could not be read or written ({}).", path, std::strerror(systemErrno))
                   : fmt::format("'{}' could not be read or written; check the disk.", path);
    default:
        return fmt::format("'{}' could not be used: {} (SQLite {}).", path, sqlite3_errstr(code), code);
    }
}

void Database::Close::operator()(sqlite3* handle) const {
    sqlite3_close_v2(handle);
}

Result<Database> Database::open(const std::string& path, int flags, const std::string& shownAs) {
    sqlite3* handle = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &handle,
                                     flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE |
                                         (shownAs.empty() ? 0 : SQLITE_OPEN_URI),
                                     nullptr);
    Database database;
    database.m_handle.reset(handle);
    database.m_path = shownAs.empty() ? path : shownAs;
    if (!handle)
        return makeError(ErrorKind::OutOfMemory, "Memory does not suffice to open '{}'.", database.m_path);
    if (code != SQLITE_OK)
        return tl::unexpected(Error{kindFor(code), sentenceFor(code, database.m_path, sqlite3_system_errno(handle))});
    return database;
}

Result<void> Database::exec(const std::string& sql) {
    if (sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
        return tl::unexpected(lastError());
    return {};
}

int Database::lastCode() const {
    return sqlite3_extended_errcode(handle());
}

Error Database::lastError() const {
    const int code = lastCode();
    return {kindFor(code), sentenceFor(code, m_path, sqlite3_system_errno(handle()))};
}

Result<Statement> Statement::prepare(Database& database, std::string_view sql) {
    sqlite3_stmt* handle = nullptr;
    const int code = sqlite3_prepare_v3(database.handle(), sql.data(), static_cast<int>(sql.size()),
                                        SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
    Statement statement;
    statement.m_handle.reset(handle);
    statement.m_path = database.path();
    if (code != SQLITE_OK)
        return tl::unexpected(database.lastError());
    return statement;
}

Statement& Statement::bind(int index, std::int64_t value) {
    sqlite3_bind_int64(m_handle.get(), index, value);
    return *this;
}

Statement& Statement::bindNull(int index) {
    sqlite3_bind_null(m_handle.get(), index);
    return *this;
}

Statement& Statement::bind(int index, double value) {
    sqlite3_bind_double(m_handle.get(), index, value);
    return *this;
}

Statement& Statement::bind(int index, std::string_view value) {
    sqlite3_bind_text64(m_handle.get(), index, value.data() ? value.data() : "", value.size(), SQLITE_STATIC,
                        SQLITE_UTF8);
    return *this;
}

Statement& Statement::bind(int index, std::span<const std::byte> value) {
    if (value.empty())
        sqlite3_bind_zeroblob(m_handle.get(), index, 0);
    else
        sqlite3_bind_blob64(m_handle.get(), index, value.data(), value.size(), SQLITE_STATIC);
    return *this;
}

int Statement::step() {
    return sqlite3_step(m_handle.get());
}

void Statement::reset() {
    sqlite3_reset(m_handle.get());
}

Result<void> Statement::run() {
    int code = step();
    while (code == SQLITE_ROW)
        code = step();
    if (code != SQLITE_DONE) {
        Error failure = error();
        reset();
        return tl::unexpected(std::move(failure));
    }
    reset();
    return {};
}

std::string Statement::text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(m_handle.get(), column));
    const int size = sqlite3_column_bytes(m_handle.get(), column);
    return bytes && size > 0 ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
}

std::span<const std::byte> Statement::blob(int column) const {
    const auto* bytes = static_cast<const std::byte*>(sqlite3_column_blob(m_handle.get(), column));
    const int size = sqlite3_column_bytes(m_handle.get(), column);
    return bytes && size > 0 ? std::span(bytes, static_cast<std::size_t>(size)) : std::span<const std::byte>();
}

Error Statement::error() const {
    sqlite3* database = sqlite3_db_handle(m_handle.get());
    const int code = sqlite3_extended_errcode(database);
    return {kindFor(code), sentenceFor(code, m_path, sqlite3_system_errno(database))};
}

} // namespace kvatlas::sessions
