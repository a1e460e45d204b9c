// SPDX-License-Identifier: Apache-2.0
#include "core/engine/output_text.h"

#include "core/model/utf8.h"

#include <algorithm>

namespace kvatlas::engine {

OutputText::OutputText(std::vector<std::string> stop)
    : m_stop(std::move(stop)) {
    std::erase(m_stop, std::string());
    for (const std::string& text : m_stop)
        m_longestStop = std::max(m_longestStop, text.size());
}

bool OutputText::push(std::string_view bytes) {
    // A stop text that was not there before ends in the new bytes.
    const std::size_t from = m_text.size() - std::min(m_text.size(), m_longestStop > 0 ? m_longestStop - 1 : 0);
    m_text += bytes;
    std::size_t earliest = std::string::npos;
    for (const std::string& stop : m_stop)
        earliest = std::min(earliest, m_text.find(stop, from));
    if (earliest == std::string::npos)
        return false;
    m_text.resize(earliest);
    return true;
}

std::string OutputText::valid() const {
    return model::toValidUtf8(m_text);
}

} // namespace kvatlas::engine
