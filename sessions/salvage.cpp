// SPDX-License-Identifier: Apache-2.0
#include "sessions/salvage.h"

#include "sessions/reader.h"
#include "sessions/schema.h"
#include "sessions/session_writer.h"

#include <filesystem>
#include <optional>

namespace kvatlas::sessions {

namespace {

// An unbroken part of the stream with a state to begin from.
struct Stretch {
    std::size_t firstChunk = 0, endChunk = 0;
    std::optional<std::size_t> keyframe; // to begin from; none: from nothing
    std::int64_t firstEvent = 0, endEvent = 0;
    std::int64_t events() const { return endEvent - firstEvent; }
};

// The part of the good chunks [begin, end) that can be folded.
std::optional<Stretch> usable(SessionReader& reader, std::size_t begin, std::size_t end) {
    const auto& chunks = reader.chunks();
    Stretch stretch{begin, end, {}, chunks[begin].firstEvent, chunks[end - 1].endEvent()};
    if (stretch.firstEvent == 0 && !reader.info().meta.contains("attached_after_step"))
        return stretch;
    for (std::size_t i = 0; i < reader.keyframes().size(); ++i) {
        const std::int64_t at = reader.keyframes()[i].firstEvent;
        if (at < stretch.firstEvent || at > stretch.endEvent)
            continue;
        const auto bytes = reader.keyframe(i);
        if (!bytes || !state::CacheState::decode(*bytes))
            continue;
        stretch.keyframe = i;
        stretch.firstEvent = at;
        return stretch;
    }
    return std::nullopt;
}

std::optional<Stretch> longestStretch(SessionReader& reader) {
    std::optional<Stretch> best;
    const auto& chunks = reader.chunks();
    std::size_t begin = 0;
    const auto consider = [&](std::size_t end) {
        if (begin >= end)
            return;
        const auto stretch = usable(reader, begin, end);
        if (stretch && (!best || stretch->events() > best->events()))
            best = stretch;
    };
    for (std::size_t i = 0; i < chunks.size(); ++i) {
        if (i > begin && chunks[i].firstEvent != chunks[i - 1].endEvent()) {
            consider(i);
            begin = i;
        }
        if (!reader.chunkEvents(i)) {
            consider(i);
            begin = i + 1;
        }
    }
    consider(chunks.size());
    return best;
}

Result<void> copyStretch(SessionReader& reader, const Stretch& stretch, SessionWriter& writer) {
    if (stretch.keyframe) {
        auto bytes = reader.keyframe(*stretch.keyframe);
        if (!bytes)
            return tl::unexpected(bytes.error());
        if (auto joined = writer.appendKeyframe(reader.keyframes()[*stretch.keyframe].step, *bytes); !joined)
            return joined;
    }
    for (std::size_t i = stretch.firstChunk; i < stretch.endChunk; ++i) {
        const std::int64_t skip = stretch.firstEvent - reader.chunks()[i].firstEvent;
        const auto events = reader.chunkEvents(i);
        if (!events)
            return tl::unexpected(events.error());
        if (skip >= static_cast<std::int64_t>((*events)->size()))
            continue;
        std::vector<trace::Event> copied((*events)->begin() + std::max<std::int64_t>(skip, 0), (*events)->end());
        writer.append(copied);
        if (auto committed = writer.commit(); !committed)
            return committed;
    }
    return {};
}

} // namespace

Result<SalvageResult> salvageSession(const std::string& from, const std::string& to) {
    auto opened = SessionReader::open(
        from, {.openLimit = std::chrono::seconds(30), .queryLimit = std::chrono::minutes(10), .cutToo = true});
    if (!opened)
        return tl::unexpected(opened.error());
    SessionReader& reader = **opened;
    if (auto held = reader.hold(); !held)
        return tl::unexpected(held.error());
    const auto stretch = longestStretch(reader);
    if (!stretch)
        return makeError(ErrorKind::Refused, "Nothing in '{}' can be saved: {}", reader.info().path,
                         reader.damaged().empty() ? "no events with a known state are readable."
                                                  : reader.damaged().front());
    auto pieces = reader.pieces();
    const auto piece = [&](TokenId token) {
        const auto found = pieces ? pieces->find(token) : decltype(pieces->end()){};
        return pieces && found != pieces->end() ? found->second : std::string();
    };
    std::map<std::string, std::string> attributes = {
        {"salvaged_from", std::filesystem::path(reader.info().path).filename().string()}};
    if (const auto created = reader.info().meta.find("created_utc"); created != reader.info().meta.end())
        attributes["recorded_utc"] = created->second;
    auto writer = SessionWriter::create(to, piece, attributes);
    if (!writer)
        return tl::unexpected(writer.error());
    auto done =
        copyStretch(reader, *stretch, **writer).and_then([&] { return (*writer)->finish(std::string(kSalvaged)); });
    if (!done) {
        const std::string unfinished = (*writer)->path();
        writer->reset();
        for (const char* suffix : {"", "-wal", "-shm"}) {
            std::error_code ignored;
            std::filesystem::remove(unfinished + suffix, ignored);
        }
        return tl::unexpected(done.error());
    }
    SalvageResult result;
    result.events = (*writer)->written().events;
    result.steps = (*writer)->written().steps;
    std::int64_t known = reader.chunks().empty() ? 0 : reader.chunks().back().endEvent();
    if (const auto end = reader.info().meta.find("end_events"); end != reader.info().meta.end())
        known = std::max<std::int64_t>(known, std::strtoll(end->second.c_str(), nullptr, 10));
    result.lostEvents = static_cast<std::uint64_t>(known) - result.events;
    result.damaged = reader.damaged();
    for (const std::string& sentence : {reader.info().hint, *done})
        if (!sentence.empty())
            result.damaged.push_back(sentence);
    return result;
}

} // namespace kvatlas::sessions
