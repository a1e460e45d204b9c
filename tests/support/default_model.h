// SPDX-License-Identifier: Apache-2.0
// Where a MODEL test finds the default model. Any thread.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace kvatlas::testing {

// What a MODEL test says when the file is not there: it fails with this, it never skips.
inline constexpr const char* kDefaultModelMissing = "default model missing; run scripts/test";

// $KVATLAS_MODEL, else the file that scripts/test puts into the user's cache folder (XDG). It need not exist.
inline std::filesystem::path defaultModelPath() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return std::string(value ? value : "");
    };
    if (const auto given = variable("KVATLAS_MODEL"); !given.empty())
        return given;
    std::filesystem::path cache = variable("XDG_CACHE_HOME");
    if (cache.empty() || cache.is_relative())
        cache = std::filesystem::path(variable("HOME")) / ".cache";
    return cache / "kvatlas" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

inline bool defaultModelExists() {
    std::error_code error;
    return std::filesystem::is_regular_file(defaultModelPath(), error);
}

} // namespace kvatlas::testing

// First line of a MODEL test.
#define KVATLAS_REQUIRE_DEFAULT_MODEL()                                                                                \
    ASSERT_TRUE(kvatlas::testing::defaultModelExists())                                                                \
        << kvatlas::testing::kDefaultModelMissing << " (looked for " << kvatlas::testing::defaultModelPath() << ")"
