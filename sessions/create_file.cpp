// SPDX-License-Identifier: Apache-2.0
#include "sessions/create_file.h"

#include "sessions/schema.h"
#include "sessions/sqlite.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace kvatlas::sessions {

namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
    struct stat info {};
    return ::lstat(path.c_str(), &info) == 0;
}

tl::unexpected<Error> cannotCreate(const std::string& path, const std::string& folder, int code) {
    switch (code) {
    case EEXIST:
        return makeError(ErrorKind::Refused, "'{}' exists already and is not overwritten; choose another name.", path);
    case ENOENT:
    case ENOTDIR:
        if (exists(folder))
            return makeError(ErrorKind::Failed,
                             "'{}' cannot be recorded: no file can be made in '{}'; choose another folder.", path,
                             folder);
        return makeError(ErrorKind::Failed, "'{}' cannot be recorded: the folder '{}' does not exist.", path, folder);
    case EACCES:
    case EPERM:
    case EROFS:
        return makeError(ErrorKind::Failed,
                         "'{}' cannot be recorded: the folder '{}' is read-only for you; choose another.", path,
                         folder);
    case ENOSPC:
    case EDQUOT:
        return makeError(ErrorKind::Failed, "'{}' cannot be recorded: the disk that holds '{}' is full.", path, folder);
    default:
        return makeError(ErrorKind::Failed, "'{}' cannot be recorded ({}).", path, std::strerror(code));
    }
}

Result<void> writeSchema(const std::string& path) {
    auto database = Database::open(path, SQLITE_OPEN_READWRITE);
    if (!database)
        return tl::unexpected(database.error());
    std::string sql =
        fmt::format("PRAGMA page_size=4096; PRAGMA journal_mode=MEMORY; PRAGMA synchronous=NORMAL; BEGIN; "
                    "PRAGMA application_id={}; PRAGMA user_version={};",
                    kApplicationId, kSchemaVersion);
    for (const SchemaObject& object : schemaObjects())
        sql.append(object.sql).append(";");
    sql += "COMMIT;";
    if (auto done = database->exec(sql); !done)
        return done;
    auto mode = Statement::prepare(*database, "PRAGMA journal_mode=WAL");
    if (!mode)
        return tl::unexpected(mode.error());
    if (mode->step() != SQLITE_ROW || mode->text(0) != "wal")
        return makeError(
            ErrorKind::Failed,
            "'{}' cannot be recorded there: the file system (a network folder?) does not allow SQLite's WAL "
            "mode; choose a folder on a local disk.",
            path);
    return {};
}

// rename that never replaces.
int moveNew(const std::string& from, const std::string& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return errno;
    // The file system knows no RENAME_NOREPLACE (some FUSE and network ones): a hard link refuses an existing name too.
    if (::link(from.c_str(), to.c_str()) != 0)
        return errno;
    ::unlink(from.c_str());
    return 0;
}

} // namespace

Result<std::string> createSessionFile(const std::string& path) {
    const fs::path given(path);
    if (given.filename().empty() || given.filename() == "." || given.filename() == "..")
        return makeError(ErrorKind::Usage, "'{}' is not a file name to record to.", path);
    const std::string folder = given.has_parent_path() ? given.parent_path().string() : ".";
    std::error_code failure;
    const fs::path realFolder = fs::canonical(folder, failure);
    if (failure)
        return cannotCreate(path, folder, failure.value());
    if (!fs::is_directory(realFolder, failure))
        return cannotCreate(path, folder, ENOTDIR);
    std::string target = (realFolder / given.filename()).string();
    if (exists(target))
        return cannotCreate(path, folder, EEXIST);
    for (const char* suffix : {"-wal", "-shm", "-journal"})
        if (exists(target + suffix))
            return makeError(
                ErrorKind::Refused,
                "'{0}' cannot be recorded: '{0}{1}', a part of an older recording, lies there; move it away "
                "or choose another name.",
                target, suffix);

    std::string draft = (realFolder / ("." + given.filename().string() + ".XXXXXX")).string();
    const int file = ::mkostemp(draft.data(), O_CLOEXEC);
    if (file < 0)
        return cannotCreate(path, folder, errno);
    ::fchmod(file, 0644);
    ::close(file);
    auto written = writeSchema(draft);
    const int moved = written ? moveNew(draft, target) : 0;
    if (!written || moved != 0) {
        for (const char* suffix : {"", "-wal", "-shm"})
            ::unlink((draft + suffix).c_str());
        if (written)
            return cannotCreate(path, folder, moved);
        Error error = written.error();
        for (std::size_t at; (at = error.message.find(draft)) != std::string::npos;)
            error.message.replace(at, draft.size(), target);
        return tl::unexpected(std::move(error));
    }
    return target;
}

} // namespace kvatlas::sessions
