// SPDX-License-Identifier: Apache-2.0
#include "sessions/playback_cursor.h"

#include <algorithm>

namespace kvatlas::sessions {

std::optional<PlaybackCursor::Part> PlaybackCursor::nextStep() {
    Part part;
    if (!m_started) {
        m_started = true;
        // A recording that joined a run under way begins with a keyframe.
        if (!m_reader.keyframes().empty() && m_reader.keyframes().front().firstEvent == 0)
            if (auto keyframe = m_reader.keyframe(0)) {
                part.jump = true;
                part.keyframe = std::move(*keyframe);
                part.keyframeStep = m_reader.keyframes().front().step;
            }
    }
    while (true) {
        const auto& chunks = m_reader.chunks();
        const auto chunk =
            std::upper_bound(chunks.begin(), chunks.end(), m_next,
                             [](std::int64_t event, const ChunkEntry& entry) { return event < entry.endEvent(); });
        if (chunk == chunks.end())
            break;
        const auto index = static_cast<std::size_t>(chunk - chunks.begin());
        if (chunk->firstEvent > m_next) {
            if (!skipDamage(index, fmt::format("events {} to {} are missing", m_next, chunk->firstEvent - 1), part))
                break;
            continue;
        }
        const auto events = m_reader.chunkEvents(index);
        if (!events) {
            if (!skipDamage(index + 1, events.error().message, part))
                break;
            continue;
        }
        const std::int64_t end = chunk->endEvent();
        for (auto i = static_cast<std::size_t>(m_next - chunk->firstEvent); i < (*events)->size(); ++i) {
            const trace::Event& event = (**events)[i];
            part.events.push_back(event);
            ++m_next;
            if (!std::holds_alternative<trace::StepEnded>(event.body))
                continue;
            part.step = event.step;
            part.endNs = event.ns;
            return part;
        }
        m_next = end;
    }
    if (part.events.empty() && !part.jump && part.skipped.empty())
        return std::nullopt;
    return part;
}

// Continues with the first undamaged keyframe whose events begin in chunk `from` or later; without one, at the end.
bool PlaybackCursor::skipDamage(std::size_t from, const std::string& why, Part& part) {
    if (part.skipped.empty())
        part.skipped = fmt::format(
            "Left out in the replay: {}; 'kvatlas-cli session salvage FILE NEW' saves what can be read.", why);
    const auto& chunks = m_reader.chunks();
    const std::int64_t firstEvent = from < chunks.size() ? chunks[from].firstEvent : -1;
    for (std::size_t i = 0; firstEvent >= 0 && i < m_reader.keyframes().size(); ++i) {
        const KeyframeEntry entry = m_reader.keyframes()[i];
        if (entry.firstEvent < firstEvent)
            continue;
        auto keyframe = m_reader.keyframe(i);
        if (!keyframe)
            continue;
        part.jump = true;
        part.keyframe = std::move(*keyframe);
        part.keyframeStep = entry.step;
        part.events.clear();
        m_next = entry.firstEvent;
        return true;
    }
    m_next = chunks.empty() ? 0 : chunks.back().endEvent();
    return false;
}

Result<PlaybackCursor::Part> PlaybackCursor::seek(Step step) {
    auto answer = m_reader.stateAt(step);
    if (!answer)
        return tl::unexpected(answer.error());
    auto base = m_reader.baseFor(answer->step);
    if (!base)
        return tl::unexpected(base.error());
    m_started = true;
    Part part;
    part.jump = true;
    part.keyframe = std::move(answer->keyframe);
    part.keyframeStep = base->step.value_or(0);
    part.events = std::move(answer->events);
    part.step = answer->step;
    // Where the stream goes on: after the last event of that step.
    const auto& chunks = m_reader.chunks();
    auto chunk = std::upper_bound(chunks.begin(), chunks.end(), base->firstEvent,
                                  [](std::int64_t event, const ChunkEntry& entry) { return event < entry.endEvent(); });
    m_next = base->firstEvent;
    for (; chunk != chunks.end() && chunk->firstStep <= answer->step; ++chunk) {
        if (chunk->lastStep <= answer->step) {
            m_next = std::max(m_next, chunk->endEvent());
            continue;
        }
        const auto events = m_reader.chunkEvents(static_cast<std::size_t>(chunk - chunks.begin()));
        if (!events)
            break;
        const auto after = std::find_if((*events)->begin(), (*events)->end(),
                                        [&](const trace::Event& event) { return event.step > answer->step; });
        m_next = std::max(m_next, chunk->firstEvent + (after - (*events)->begin()));
        break;
    }
    if (!part.events.empty())
        part.endNs = part.events.back().ns;
    return part;
}

} // namespace kvatlas::sessions
