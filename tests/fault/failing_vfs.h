// SPDX-License-Identifier: Apache-2.0
// A disk that fails on demand: an SQLite VFS in front of the real one, the process's default while it lives. The n-th
// write, sync or truncation fails, once or from then on. Any thread; one at a time per process.
#pragma once

#include <atomic>
#include <cstring>
#include <sqlite3.h>

namespace kvatlas::test {

class FailingVfs {
public:
    enum class How { Full, ShortWrite, InputOutput };

    FailingVfs() {
        s_real = sqlite3_vfs_find(nullptr);
        m_vfs = *s_real;
        m_vfs.zName = "kvatlas-failing";
        m_vfs.szOsFile = static_cast<int>(sizeof(File)) + s_real->szOsFile;
        m_vfs.xOpen = open;
        sqlite3_vfs_register(&m_vfs, 1);
    }
    ~FailingVfs() {
        sqlite3_vfs_register(s_real, 1);
        sqlite3_vfs_unregister(&m_vfs);
    }
    FailingVfs(const FailingVfs&) = delete;
    FailingVfs& operator=(const FailingVfs&) = delete;

    // Operation n (from 1) fails, and with `forEver` all after it. 0: none.
    void failAt(int n, How how, bool forEver) {
        s_count = 0;
        s_how = how;
        s_forEver = forEver;
        s_failAt = n;
    }
    int operations() const { return s_count; }

private:
    struct File {
        sqlite3_file base;
        sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
    };
    static File* of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
    static sqlite3_file* real(sqlite3_file* file) { return of(file)->real(); }

    static bool failsNow() {
        const int n = ++s_count;
        return s_failAt != 0 && (n == s_failAt || (s_forEver && n > s_failAt));
    }

    static int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* outFlags) {
        file->pMethods = nullptr;
        const int code = s_real->xOpen(s_real, name, real(file), flags, outFlags);
        if (code == SQLITE_OK)
            file->pMethods = methods();
        return code;
    }

    static int write(sqlite3_file* file, const void* bytes, int count, sqlite3_int64 at) {
        if (failsNow()) {
            if (s_how == How::ShortWrite)
                real(file)->pMethods->xWrite(real(file), bytes, count / 2, at);
            return s_how == How::InputOutput ? SQLITE_IOERR_WRITE : SQLITE_FULL;
        }
        return real(file)->pMethods->xWrite(real(file), bytes, count, at);
    }
    static int sync(sqlite3_file* file, int flags) {
        return failsNow() ? SQLITE_IOERR_FSYNC : real(file)->pMethods->xSync(real(file), flags);
    }
    static int truncate(sqlite3_file* file, sqlite3_int64 size) {
        return failsNow() ? SQLITE_IOERR_TRUNCATE : real(file)->pMethods->xTruncate(real(file), size);
    }

    static const sqlite3_io_methods* methods() {
        static const sqlite3_io_methods all = {
            .iVersion = 2,
            .xClose = [](sqlite3_file* f) { return real(f)->pMethods->xClose(real(f)); },
            .xRead = [](sqlite3_file* f, void* to, int n,
                        sqlite3_int64 at) { return real(f)->pMethods->xRead(real(f), to, n, at); },
            .xWrite = write,
            .xTruncate = truncate,
            .xSync = sync,
            .xFileSize = [](sqlite3_file* f, sqlite3_int64* n) { return real(f)->pMethods->xFileSize(real(f), n); },
            .xLock = [](sqlite3_file* f, int level) { return real(f)->pMethods->xLock(real(f), level); },
            .xUnlock = [](sqlite3_file* f, int level) { return real(f)->pMethods->xUnlock(real(f), level); },
            .xCheckReservedLock = [](sqlite3_file* f,
                                     int* out) { return real(f)->pMethods->xCheckReservedLock(real(f), out); },
            .xFileControl = [](sqlite3_file* f, int op,
                               void* arg) { return real(f)->pMethods->xFileControl(real(f), op, arg); },
            .xSectorSize = [](sqlite3_file* f) { return real(f)->pMethods->xSectorSize(real(f)); },
            .xDeviceCharacteristics =
                [](sqlite3_file* f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); },
            .xShmMap = [](sqlite3_file* f, int page, int size, int extend,
                          void volatile** out) { return real(f)->pMethods->xShmMap(real(f), page, size, extend, out); },
            .xShmLock = [](sqlite3_file* f, int offset, int n,
                           int flags) { return real(f)->pMethods->xShmLock(real(f), offset, n, flags); },
            .xShmBarrier = [](sqlite3_file* f) { real(f)->pMethods->xShmBarrier(real(f)); },
            .xShmUnmap = [](sqlite3_file* f, int remove) { return real(f)->pMethods->xShmUnmap(real(f), remove); },
            .xFetch = nullptr,
            .xUnfetch = nullptr,
        };
        return &all;
    }

    sqlite3_vfs m_vfs{};
    static inline sqlite3_vfs* s_real = nullptr;
    static inline std::atomic<int> s_count{0}, s_failAt{0};
    static inline std::atomic<How> s_how{How::Full};
    static inline std::atomic<bool> s_forEver{false};
};

} // namespace kvatlas::test
