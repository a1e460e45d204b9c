// SPDX-License-Identifier: Apache-2.0
// The text of a request as its tokens come, and the watch for its stop texts over token borders. One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kvatlas::engine {

class OutputText {
public:
    // Empty stop texts are left out.
    explicit OutputText(std::vector<std::string> stop);

    // Appends the bytes of a token. True when a stop text is complete: the text then ends before the earliest one.
    bool push(std::string_view bytes);

    std::string valid() const; // as UTF-8; what is no character is U+FFFD

private:
    std::vector<std::string> m_stop;
    std::size_t m_longestStop = 0;
    std::string m_text;
};

} // namespace kvatlas::engine
