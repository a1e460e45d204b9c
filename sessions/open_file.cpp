// SPDX-License-Identifier: Apache-2.0
#include "sessions/open_file.h"

#include "sessions/schema.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

namespace kvatlas::sessions {

namespace fs = std::filesystem;

void TimeLimit::start(std::chrono::milliseconds limit) {
    m_untilNs = (std::chrono::steady_clock::now() + limit).time_since_epoch().count();
}

bool TimeLimit::isOver() const {
    if (m_cancelled)
        return true;
    const std::int64_t until = m_untilNs;
    return until != 0 && std::chrono::steady_clock::now().time_since_epoch().count() > until;
}

namespace {

constexpr int kHeaderBytes = 100;
using Header = std::array<unsigned char, kHeaderBytes>;

struct SideFiles {
    std::uintmax_t walBytes = 0;
    bool wal = false, shm = false;
};

std::uint32_t bigEndian32(const Header& header, std::size_t at) {
    return std::uint32_t{header[at]} << 24 | std::uint32_t{header[at + 1]} << 16 | std::uint32_t{header[at + 2]} << 8 |
           header[at + 3];
}

Result<std::string> checkMainFile(const std::string& path) {
    std::error_code failure;
    std::string real = fs::canonical(path, failure).string();
    if (failure)
        return makeError(ErrorKind::Refused, "'{}' cannot be opened ({}); check the path.", path,
                         std::strerror(failure.value()));
    struct stat info {};
    if (::stat(real.c_str(), &info) != 0)
        return makeError(ErrorKind::Refused, "'{}' cannot be opened ({}); check the path.", path, std::strerror(errno));
    if (S_ISDIR(info.st_mode))
        return makeError(ErrorKind::Refused, "'{}' is a folder; choose a session file in it.", path);
    if (!S_ISREG(info.st_mode))
        return makeError(ErrorKind::Refused, "'{}' is a device, pipe or socket, not a session file.", path);
    if (info.st_size < kHeaderBytes)
        return makeError(ErrorKind::Refused, "'{}' is not a KVAtlas session: it has only {} bytes.", path,
                         static_cast<long long>(info.st_size));
    if (::access(real.c_str(), R_OK) != 0)
        return makeError(ErrorKind::Refused, "'{}' may not be read by you; check its permissions.", path);
    return real;
}

Result<SideFiles> checkSideFiles(const std::string& real) {
    SideFiles side;
    for (const char* suffix : {"-wal", "-shm", "-journal"}) {
        struct stat info {};
        if (::lstat((real + suffix).c_str(), &info) != 0)
            continue;
        if (!S_ISREG(info.st_mode))
            return makeError(ErrorKind::Refused,
                             "'{0}{1}' is a link or device, not a part of the session '{0}'; remove it before opening.",
                             real, suffix);
        const std::string_view which = suffix;
        if (which == "-journal" && info.st_size > 0)
            return makeError(ErrorKind::Refused,
                             "'{0}-journal' lies beside the session, which KVAtlas never writes; another program has "
                             "changed '{0}' and has not finished.",
                             real);
        if (which == "-wal") {
            side.wal = true;
            side.walBytes = static_cast<std::uintmax_t>(info.st_size);
        }
        if (which == "-shm")
            side.shm = true;
    }
    return side;
}

// Through SQLite's own handle: opening and closing the file ourselves would drop the locks that a recorder in this
// process holds on it (POSIX).
Result<Header> readHeader(Database& database, const std::string& path) {
    sqlite3_file* file = nullptr;
    Header header{};
    if (sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file)) !=
            SQLITE_OK ||
        !file || !file->pMethods || file->pMethods->xRead(file, header.data(), kHeaderBytes, 0) != SQLITE_OK)
        return makeError(ErrorKind::Refused, "'{}' could not be read.", path);
    return header;
}

Result<void> checkHeader(const Header& header, const std::string& path) {
    if (std::memcmp(header.data(), "SQLite format 3", 16) != 0)
        return makeError(ErrorKind::Refused, "'{}' is not a KVAtlas session: it is no SQLite database.", path);
    if (const std::uint32_t id = bigEndian32(header, 68); id != kApplicationId)
        return makeError(
            ErrorKind::Refused,
            "'{}' is an SQLite database of another program (application id {:#010x}, a KVAtlas session has "
            "{:#010x}).",
            path, id, kApplicationId);
    const auto version = static_cast<std::int32_t>(bigEndian32(header, 60));
    if (version > static_cast<std::int32_t>(kSchemaVersion))
        return makeError(
            ErrorKind::Refused,
            "'{}' has session format {}, this KVAtlas reads formats up to {}; open it with a newer KVAtlas.", path,
            version, kSchemaVersion);
    if (version <= 0)
        return makeError(ErrorKind::Refused, "'{}' has session format {}, which no KVAtlas has written.", path,
                         version);
    return {};
}

// How many bytes shorter the file is than its header says.
std::uintmax_t missingBytes(const Header& header, const std::string& path) {
    const std::uintmax_t size16 = std::uintmax_t{header[16]} << 8 | header[17];
    const std::uintmax_t expected = std::uintmax_t{bigEndian32(header, 28)} * (size16 == 1 ? 65'536 : size16);
    std::error_code none;
    const std::uintmax_t size = fs::file_size(path, none);
    return none || size >= expected ? 0 : expected - size;
}

std::string immutableUri(const std::string& path) {
    std::string uri = "file:";
    for (const char c : path) {
        if (std::isalnum(static_cast<unsigned char>(c)) || std::strchr("/._-", c))
            uri += c;
        else
            uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return uri + "?immutable=1";
}

struct CopyFolder {
    explicit CopyFolder(fs::path folder)
        : path(std::move(folder)) {}
    CopyFolder(const CopyFolder&) = delete;
    CopyFolder& operator=(const CopyFolder&) = delete;
    ~CopyFolder() {
        std::error_code ignored;
        fs::remove_all(path, ignored);
    }
    fs::path path;
};

Result<std::shared_ptr<CopyFolder>> copyWithWal(const std::string& real) {
    std::error_code failure;
    std::string folder = (fs::temp_directory_path(failure) / "kvatlas-XXXXXX").string();
    if (failure || !::mkdtemp(folder.data()))
        return makeError(ErrorKind::Failed, "'{}' must be copied to a temporary folder to be read, and there is none.",
                         real);
    auto copy = std::make_shared<CopyFolder>(folder);
    for (const char* suffix : {"", "-wal"}) {
        const fs::path target = copy->path / (std::string("session") + suffix);
        fs::copy_file(real + suffix, target, failure);
        if (!failure) // SQLite writes to the -wal's index, and wants to be able to write to the -wal
            fs::permissions(target, fs::perms::owner_read | fs::perms::owner_write, failure);
        if (failure)
            return makeError(ErrorKind::Failed,
                             "'{}' lies in a read-only folder with its -wal and could not be copied to '{}' ({}).",
                             real, folder, std::strerror(failure.value()));
    }
    return copy;
}

// SQLite refuses a file that is shorter than its header says, unless its schema may be written.
void acceptMissingPages(Database& database) {
    sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_DEFENSIVE, 0, nullptr);
    sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_WRITABLE_SCHEMA, 1, nullptr);
}

void harden(Database& database, TimeLimit* limit) {
    sqlite3* handle = database.handle();
    const std::pair<int, int> settings[] = {
        {SQLITE_DBCONFIG_DEFENSIVE, 1},        {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},   {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        {SQLITE_DBCONFIG_DQS_DDL, 0},          {SQLITE_DBCONFIG_DQS_DML, 0},
        {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0},  {SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        {SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1},
    };
    for (const auto& [setting, value] : settings)
        sqlite3_db_config(handle, setting, value, nullptr);
    const std::pair<int, int> limits[] = {
        {SQLITE_LIMIT_LENGTH, static_cast<int>(kMaxKeyframeRawBytes)},
        {SQLITE_LIMIT_SQL_LENGTH, 100'000},
        {SQLITE_LIMIT_COLUMN, 64},
        {SQLITE_LIMIT_EXPR_DEPTH, 50},
        {SQLITE_LIMIT_COMPOUND_SELECT, 8},
        {SQLITE_LIMIT_VDBE_OP, 25'000},
        {SQLITE_LIMIT_ATTACHED, 0},
        {SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        {SQLITE_LIMIT_WORKER_THREADS, 0},
    };
    for (const auto& [which, value] : limits)
        sqlite3_limit(handle, which, value);
    sqlite3_busy_timeout(handle, 1000);
    sqlite3_progress_handler(
        handle, 10'000, [](void* over) { return static_cast<TimeLimit*>(over)->isOver() ? 1 : 0; }, limit);
}

Result<void> checkSchema(Database& database) {
    auto rows = Statement::prepare(database, "SELECT type, name, sql FROM sqlite_schema");
    if (!rows)
        return tl::unexpected(rows.error());
    std::set<std::string, std::less<>> missing;
    for (const SchemaObject& object : schemaObjects())
        if (object.type == "table")
            missing.emplace(object.name);
    int code;
    while ((code = rows->step()) == SQLITE_ROW) {
        const std::string type = rows->text(0), name = rows->text(1), sql = rows->text(2);
        if (type == "view")
            continue; // never run
        bool ours = false;
        for (const SchemaObject& object : schemaObjects())
            ours = ours || (object.type == type && object.name == name && object.sql == sql);
        if (!ours)
            return makeError(
                ErrorKind::Refused,
                "'{}' is not a session that KVAtlas wrote: it holds a {} '{}' that is not part of the format.",
                database.path(), type.substr(0, 16), name.substr(0, 64));
        missing.erase(name);
    }
    if (code != SQLITE_DONE)
        return tl::unexpected(rows->error());
    if (!missing.empty())
        return makeError(ErrorKind::Refused, "'{}' is not a session that KVAtlas wrote: its table '{}' is missing.",
                         database.path(), *missing.begin());
    return {};
}

constexpr int kOpenFlags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW;

Result<Database> openCopy(const std::string& real, OpenedFile& opened) {
    auto copy = copyWithWal(real);
    if (!copy)
        return tl::unexpected(copy.error());
    opened.copy = *copy;
    return Database::open(((*copy)->path / "session").string(), kOpenFlags, real);
}

Result<void> makeReady(OpenedFile& opened, bool cut) {
    harden(opened.database, opened.limit.get());
    if (cut)
        acceptMissingPages(opened.database);
    if (auto set = opened.database.exec("PRAGMA query_only=ON; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0; "
                                        "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-16384;");
        !set)
        return set;
    return checkSchema(opened.database);
}

} // namespace

Result<OpenedFile> openSessionFile(const std::string& path, std::chrono::milliseconds timeLimit, bool cutToo) {
    auto real = checkMainFile(path);
    if (!real)
        return tl::unexpected(real.error());
    if (auto side = checkSideFiles(*real); !side)
        return tl::unexpected(side.error());

    OpenedFile opened;
    opened.limit = std::make_unique<TimeLimit>();
    opened.limit->start(timeLimit);
    opened.path = *real;
    auto database = Database::open(*real, kOpenFlags);
    if (!database)
        return tl::unexpected(database.error());
    auto header = readHeader(*database, path);
    if (!header)
        return tl::unexpected(header.error());
    if (auto fine = checkHeader(*header, path); !fine)
        return tl::unexpected(fine.error());
    opened.schemaVersion = bigEndian32(*header, 60);
    opened.walMode = (*header)[18] == 2;
    // Once more: a recording that ended meanwhile has taken its -wal away.
    const auto side = checkSideFiles(*real);
    if (!side)
        return tl::unexpected(side.error());

    const std::string folder = fs::path(*real).parent_path().string();
    const bool folderWritable = ::access(folder.c_str(), W_OK) == 0;
    if (!opened.walMode && side->walBytes > 0) {
        // A finished session has left WAL mode: what lies there belongs to another file, and SQLite would mix them.
        opened.note = fmt::format("'{}-wal' does not belong to this finished session and was not read.", *real);
        database = Database::open(immutableUri(*real), kOpenFlags, *real);
    } else if (opened.walMode && !folderWritable && side->walBytes == 0) {
        database = Database::open(immutableUri(*real), kOpenFlags, *real);
    } else if (opened.walMode && !folderWritable) {
        database = openCopy(*real, opened);
    }
    if (!database)
        return tl::unexpected(database.error());
    opened.database = std::move(*database);
    // A -wal holds the newest pages; what it holds the file itself may be without.
    const std::uintmax_t missing = opened.walMode && side->walBytes > 0 ? 0 : missingBytes(*header, *real);
    if (missing > 0)
        opened.note = fmt::format("'{}' was cut short: its last {} bytes are missing.", *real, missing);
    auto ready = makeReady(opened, cutToo && missing > 0);
    // SQLite wants an index file beside a -wal; on a full disk, for instance, there is no room for it.
    if (!ready && ready.error().kind == ErrorKind::Failed && !opened.copy && side->walBytes > 0 &&
        !opened.limit->isOver()) {
        database = openCopy(*real, opened);
        if (!database)
            return tl::unexpected(ready.error());
        opened.database = std::move(*database);
        ready = makeReady(opened, cutToo && missing > 0);
    }
    if (!ready && cutToo && (opened.database.lastCode() & 0xFF) == SQLITE_CORRUPT)
        return makeError(
            ErrorKind::Refused,
            "Nothing in '{}' can be saved: its first pages, which list its tables, are damaged or missing.", *real);
    if (!ready)
        return tl::unexpected(ready.error());
    return opened;
}

} // namespace kvatlas::sessions
