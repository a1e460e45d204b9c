// SPDX-License-Identifier: Apache-2.0
#include "app/user_folders.h"

#include <array>
#include <cstdlib>
#include <pwd.h>
#include <unistd.h>

namespace kvatlas::app {

namespace fs = std::filesystem;

fs::path absoluteFrom(const char* variable) {
    const char* value = std::getenv(variable);
    const fs::path path = value == nullptr ? "" : value;
    return path.is_absolute() ? path : fs::path();
}

fs::path home() {
    if (const fs::path given = absoluteFrom("HOME"); !given.empty())
        return given;
    std::array<char, 4096> texts{};
    passwd user{};
    passwd* found = nullptr;
    ::getpwuid_r(::getuid(), &user, texts.data(), texts.size(), &found);
    return found != nullptr && *found->pw_dir == '/' ? found->pw_dir : "/nonexistent"; // Debian's word for no home
}

fs::path cacheHome() {
    const fs::path given = absoluteFrom("XDG_CACHE_HOME");
    return given.empty() ? home() / ".cache" : given;
}

fs::path dataHome() {
    const fs::path given = absoluteFrom("XDG_DATA_HOME");
    return given.empty() ? home() / ".local" / "share" : given;
}

} // namespace kvatlas::app
