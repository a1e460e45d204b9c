// SPDX-License-Identifier: Apache-2.0
#include "core/base/small_file.h"

#include <cerrno>
#include <fstream>
#include <system_error>

namespace kvatlas {

Result<std::string> readSmallFile(const std::filesystem::path& file, std::size_t maxBytes) {
    std::error_code error;
    const auto status = std::filesystem::status(file, error);
    if (!error && std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
        return makeError(ErrorKind::Refused, "{} is a folder or a device; give a file (or - for stdin).",
                         file.string());
    std::ifstream stream(file, std::ios::binary);
    if (!stream)
        return makeError(ErrorKind::Refused, "{} cannot be opened: {}; check the path and its permissions.",
                         file.string(), std::generic_category().message(errno));
    std::string text(maxBytes + 1, '\0');
    stream.read(text.data(), static_cast<std::streamsize>(text.size()));
    if (stream.bad())
        return makeError(ErrorKind::Failed, "{} cannot be read: {}.", file.string(),
                         std::generic_category().message(errno));
    text.resize(static_cast<std::size_t>(stream.gcount()));
    if (text.size() > maxBytes)
        return makeError(ErrorKind::Refused, "{} is larger than the {} bytes that a file of this kind may have.",
                         file.string(), maxBytes);
    return text;
}

} // namespace kvatlas
