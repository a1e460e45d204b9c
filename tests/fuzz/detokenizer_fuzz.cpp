// SPDX-License-Identifier: Apache-2.0
// Any bytes in chunks of any size: the text is valid UTF-8 at every moment and in the end the same as in one go.
// Input: one byte that seeds the sizes of the chunks, then the bytes.
#include "core/model/tokenizer.h"
#include "core/model/utf8.h"
#include "tests/support/exercise_model.h"

using namespace kvatlas::model;
using kvatlas::testing::insist;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0)
        return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
    StreamingDecoder decoder;
    std::string text;
    std::uint32_t seed = data[0];
    for (std::size_t at = 0; at < bytes.size();) {
        seed = seed * 1'664'525u + 1'013'904'223u;
        const std::size_t chunk = std::min<std::size_t>(seed >> 29, bytes.size() - at);
        const std::string now = decoder.push(bytes.substr(at, chunk));
        insist(toValidUtf8(now) == now, "what comes out is valid");
        text += now;
        at += chunk;
    }
    text += decoder.finish();
    insist(text == toValidUtf8(bytes), "chunks do not change the text");
    return 0;
}
