// SPDX-License-Identifier: Apache-2.0
// Any bytes as a GGUF file: refused with a sentence, or a file and perhaps a model that can be used to the last byte.
#include "tests/support/exercise_model.h"

using namespace kvatlas;
using namespace kvatlas::model;
using kvatlas::testing::insist;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto* begin = reinterpret_cast<const std::byte*>(data);
    const std::vector<std::byte> bytes(begin, begin + size);
    for (const auto parts : {GgufParts::HeaderOnly, GgufParts::HeaderAndData}) {
        const auto file = GgufFile::fromBytes(bytes, "f", parts);
        if (!file) {
            insist(!file.error().message.empty(), "a refusal is a sentence");
            continue;
        }
        for (const GgufEntry& entry : file->entries()) {
            insist(file->find(entry.key) == &entry, "a key is found by its name");
            (void)file->count(entry.key);
            (void)file->number(entry.key);
            (void)file->flag(entry.key);
            (void)file->text(entry.key);
            (void)file->texts(entry.key);
            (void)file->integers(entry.key);
            (void)file->floats(entry.key);
        }
        std::uint64_t sum = 0;
        for (const GgufTensor& tensor : file->tensors())
            for (const std::byte byte : tensor.data)
                sum += static_cast<std::uint64_t>(byte);
        insist(sum < ~std::uint64_t{0}, "the data were read");
    }
    if (const auto model = Model::fromBytes(bytes, "f")) {
        kvatlas::testing::exercise(**model);
        insist(bool((*model)->sha256()), "bytes in memory have a hash");
    }
    return 0;
}
