// SPDX-License-Identifier: Apache-2.0
#include "core/model/mapped_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace kvatlas::model {

namespace {

std::string reasonOf(int error) {
    return std::generic_category().message(error);
}

} // namespace

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
    const auto refuse = [&path](std::string_view why) {
        return makeError(ErrorKind::Refused, "{}: {}", path.string(), why);
    };
    // O_NONBLOCK: a pipe named like a model must not hang the program.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return refuse(fmt::format("cannot be opened ({}); check the path", reasonOf(errno)));
    MappedFile file(path, descriptor, nullptr, 0);

    struct stat status {};
    if (::fstat(descriptor, &status) != 0)
        return refuse(fmt::format("cannot be examined ({})", reasonOf(errno)));
    if (S_ISDIR(status.st_mode))
        return refuse("is a folder; name a file inside it");
    if (!S_ISREG(status.st_mode))
        return refuse("is not a regular file; copy it to a disk first");
    if (status.st_size == 0)
        return refuse("is empty; fetch it again");

    const auto size = static_cast<std::size_t>(status.st_size);
    void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED && errno == ENOMEM)
        return makeError(ErrorKind::OutOfMemory,
                         "{}: its {} bytes do not fit into the memory that this process may use; take a smaller model "
                         "or raise the limit (ulimit -v)",
                         path.string(), size);
    if (data == MAP_FAILED)
        return refuse(fmt::format("its {} bytes cannot be mapped into memory ({})", size, reasonOf(errno)));
    file.m_data = static_cast<const std::byte*>(data);
    file.m_size = size;
    return file;
}

Result<void> MappedFile::checkStillWhole() const {
    struct stat status {};
    if (::fstat(m_descriptor, &status) != 0 || static_cast<std::size_t>(status.st_size) < m_size)
        return makeError(ErrorKind::Refused,
                         "{}: the file has become shorter than the {} bytes it had when it was opened; open it again "
                         "when nothing writes to it",
                         m_path.string(), m_size);
    return {};
}

void MappedFile::close() noexcept {
    if (m_data)
        ::munmap(const_cast<std::byte*>(m_data), m_size);
    if (m_descriptor >= 0)
        ::close(m_descriptor);
    m_data = nullptr;
    m_descriptor = -1;
}

MappedFile::~MappedFile() {
    close();
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : m_path(std::move(other.m_path))
    , m_descriptor(std::exchange(other.m_descriptor, -1))
    , m_data(std::exchange(other.m_data, nullptr))
    , m_size(std::exchange(other.m_size, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
    if (this != &other) {
        close();
        m_path = std::move(other.m_path);
        m_descriptor = std::exchange(other.m_descriptor, -1);
        m_data = std::exchange(other.m_data, nullptr);
        m_size = std::exchange(other.m_size, 0);
    }
    return *this;
}

} // namespace kvatlas::model
