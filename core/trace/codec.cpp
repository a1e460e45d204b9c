// SPDX-License-Identifier: Apache-2.0
#include "core/trace/codec.h"

#include "core/base/bytes.h"

#include <cassert>
#include <cmath>
#include <concepts>
#include <limits>

namespace kvatlas::trace {

namespace {

// Every field list is written once, as fields(archive, struct), and serves writing and reading.

class Writer {
public:
    explicit Writer(std::vector<std::byte>& out)
        : m_bytes(out) {}

    template <std::unsigned_integral T> void number(T value) { m_bytes.varint(value); }
    void number(std::int64_t value) { m_bytes.signedVarint(value); }
    void token(TokenId value) { m_bytes.varint(static_cast<std::uint32_t>(value)); }
    void flag(bool value) { m_bytes.fixed<std::uint8_t>(value ? 1 : 0); }
    void fixed64(std::uint64_t value) { m_bytes.fixed(value); }
    void probability(float value) { m_bytes.fixed(value); }
    void text(const std::string& value) { m_bytes.text(value); }
    template <class E> void enumeration(E value, E) { m_bytes.fixed(static_cast<std::uint8_t>(value)); }
    template <class T, class Each> void list(const std::vector<T>& values, std::size_t, Each each) {
        m_bytes.varint(values.size());
        for (const T& value : values)
            each(*this, value);
    }

private:
    ByteWriter m_bytes;
};

class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes)
        : m_bytes(bytes) {}

    template <std::unsigned_integral T> void number(T& value) {
        const std::uint64_t raw = m_bytes.varint();
        if (raw > std::numeric_limits<T>::max())
            m_bytes.fail();
        value = static_cast<T>(raw);
    }
    void number(std::int64_t& value) { value = m_bytes.signedVarint(); }
    void token(TokenId& value) {
        std::uint32_t raw = 0;
        number(raw);
        value = static_cast<TokenId>(raw);
    }
    void flag(bool& value) {
        const auto raw = m_bytes.fixed<std::uint8_t>();
        if (raw > 1)
            m_bytes.fail();
        value = raw == 1;
    }
    void fixed64(std::uint64_t& value) { value = m_bytes.fixed<std::uint64_t>(); }
    void probability(float& value) {
        value = m_bytes.fixed<float>();
        if (!std::isfinite(value))
            m_bytes.fail();
    }
    void text(std::string& value) { value = m_bytes.text(); }
    template <class E> void enumeration(E& value, E last) { // values 1..last
        const auto raw = m_bytes.fixed<std::uint8_t>();
        if (raw < 1 || raw > static_cast<std::uint8_t>(last))
            m_bytes.fail();
        value = static_cast<E>(raw);
    }
    template <class T, class Each> void list(std::vector<T>& values, std::size_t minBytesEach, Each each) {
        const std::size_t count = m_bytes.count(minBytesEach);
        values.reserve(count);
        for (std::size_t i = 0; i < count && m_bytes.ok(); ++i)
            each(*this, values.emplace_back());
    }

    ByteReader& bytes() { return m_bytes; }

private:
    ByteReader m_bytes;
};

template <class Archive, class T> void tokens(Archive& a, T& list) {
    a.list(list, 1, [](auto& archive, auto& token) { archive.token(token); });
}

void blocks(Writer& a, const std::vector<BlockId>& list) {
    std::uint32_t before = 0;
    a.list(list, 1, [&before](Writer& archive, const BlockId& block) {
        archive.number(std::int64_t{block.value} - std::int64_t{before});
        before = block.value;
    });
}

void blocks(Reader& a, std::vector<BlockId>& list) {
    std::uint32_t before = 0;
    a.list(list, 1, [&before](Reader& archive, BlockId& block) {
        std::int64_t difference = 0;
        archive.number(difference);
        const std::uint64_t value = std::uint64_t{before} + static_cast<std::uint64_t>(difference);
        if (value > std::numeric_limits<std::uint32_t>::max())
            archive.bytes().fail();
        block.value = before = static_cast<std::uint32_t>(value);
    });
}

template <class Archive, class T> void shapeFields(Archive& a, T& shape) {
    a.text(shape.name);
    a.text(shape.sha256);
    a.text(shape.architecture);
    a.number(shape.layers);
    a.number(shape.queryHeads);
    a.number(shape.kvHeads);
    a.number(shape.headDim);
    a.number(shape.contextTokens);
    a.number(shape.vocabulary);
    a.number(shape.parameters);
}

template <class Archive, class T> void poolFields(Archive& a, T& pool) {
    a.number(pool.pool.value);
    a.enumeration(pool.tier, Tier::Disk);
    a.text(pool.kFormat);
    a.text(pool.vFormat);
    a.number(pool.blocks);
    a.number(pool.blockTokens);
    a.number(pool.blockBytes);
}

// T is the named event struct, or const of it.
template <class Event, class T> constexpr bool kIs = std::is_same_v<std::remove_const_t<T>, Event>;

template <class Archive, class T> void requestFields(Archive& a, T& e) {
    if constexpr (kIs<CommandApplied, T>) {
        a.text(e.command);
        a.number(e.request.value);
    } else if constexpr (kIs<RequestArrived, T>) {
        a.number(e.request.value);
        tokens(a, e.promptTokens);
        a.number(e.maxTokens);
        a.text(e.title);
    } else if constexpr (kIs<RequestAdmitted, T>) {
        a.number(e.request.value);
        a.number(e.cachedTokens);
    } else if constexpr (kIs<RequestPreempted, T>) {
        a.number(e.request.value);
        a.enumeration(e.reason, PreemptionReason::Command);
        a.number(e.tokensLost);
    } else if constexpr (kIs<RequestResumed, T>) {
        a.number(e.request.value);
    } else if constexpr (kIs<RequestFinished, T>) {
        a.number(e.request.value);
        a.enumeration(e.reason, FinishReason::Refused);
        a.number(e.outputTokens);
        a.text(e.detail);
    } else if constexpr (kIs<SequenceStarted, T>) {
        a.number(e.sequence.value);
        a.number(e.request.value);
    } else {
        static_assert(kIs<SequenceEnded, T>);
        a.number(e.sequence.value);
    }
}

template <class Archive, class T> void blockFields(Archive& a, T& e) {
    a.number(e.sequence.value);
    if constexpr (kIs<BlocksAllocated, T>) {
        a.number(e.firstLogical);
        blocks(a, e.blocks);
    } else if constexpr (kIs<BlocksReserved, T>) {
        a.number(e.firstLogical);
        a.number(e.first.value);
        a.number(e.count);
    } else if constexpr (kIs<BlocksReleased, T>) {
        a.enumeration(e.reason, ReleaseReason::Preempted);
        blocks(a, e.blocks);
    } else {
        static_assert(kIs<SlotsWritten, T>);
        a.number(e.firstPosition);
        a.number(e.count);
    }
}

template <class Archive, class T> void stepFields(Archive& a, T& e) {
    if constexpr (kIs<StepStarted, T>) {
        a.list(e.batch, 4, [](auto& archive, auto& entry) {
            archive.number(entry.sequence.value);
            archive.number(entry.firstPosition);
            archive.number(entry.tokens);
            archive.flag(entry.prefill);
        });
        a.number(e.waitingRequests);
    } else if constexpr (kIs<StepEnded, T>) {
        a.number(e.computeNs);
        a.number(e.waitNs);
        a.fixed64(e.stateHash);
    } else {
        static_assert(kIs<TokenSampled, T>);
        a.number(e.request.value);
        a.number(e.sequence.value);
        a.number(e.position);
        a.token(e.token);
        for (auto& candidate : e.top) {
            a.token(candidate.token);
            a.probability(candidate.probability);
        }
    }
}

template <class Archive, class T> void fields(Archive& a, T& e) {
    if constexpr (kIs<RunStarted, T>) {
        shapeFields(a, e.model);
        a.list(e.pools, 7, [](auto& archive, auto& pool) { poolFields(archive, pool); });
        a.text(e.backend);
        a.text(e.arithmetic);
        a.number(e.threads);
        a.text(e.strategyJson);
        a.text(e.scenarioJson);
        a.number(e.seed);
        a.text(e.programVersion);
        a.text(e.machine);
    } else if constexpr (kIs<StepStarted, T> || kIs<StepEnded, T> || kIs<TokenSampled, T>) {
        stepFields(a, e);
    } else if constexpr (kIs<BlocksAllocated, T> || kIs<BlocksReserved, T> || kIs<BlocksReleased, T> ||
                         kIs<SlotsWritten, T>) {
        blockFields(a, e);
    } else if constexpr (kIs<KernelSpan, T>) {
        a.enumeration(e.kernel, KernelKind::Sample);
        a.number(e.layer.value);
        a.number(e.calls);
        a.number(e.durationNs);
        a.number(e.bytes);
        a.number(e.flops);
    } else if constexpr (kIs<MemoryCounter, T>) {
        a.number(e.arenaBytes);
        a.number(e.residentBytes);
    } else if constexpr (kIs<EventsLost, T>) {
        a.number(e.count);
    } else {
        requestFields(a, e);
    }
}

constexpr std::size_t kMinEventBytes = 4; // kind, step, ns, one field

bool readBody(Reader& reader, std::uint8_t kind, EventBody& body) {
    switch (kind) {
#define KVATLAS_EVENT(id, Type, name, class)                                                                           \
    case id:                                                                                                           \
        fields(reader, body.emplace<Type>());                                                                          \
        return true;
#include "core/trace/event_kinds.def"
#undef KVATLAS_EVENT
    default:
        return false;
    }
}

} // namespace

void encodeTo(std::vector<std::byte>& out, std::span<const Event> events) {
    ByteWriter bytes(out);
    Writer writer(out);
    bytes.fixed(kCodecVersion);
    bytes.varint(events.size());
    Step step = 0;
    std::uint64_t ns = 0;
    for (const Event& event : events) {
        bytes.fixed(static_cast<std::uint8_t>(event.kind()));
        bytes.signedVarint(std::int64_t{event.step} - std::int64_t{step});
        bytes.signedVarint(static_cast<std::int64_t>(static_cast<std::uint64_t>(event.ns) - ns));
        step = event.step;
        ns = static_cast<std::uint64_t>(event.ns);
        std::visit(
            [&writer](const auto& body) {
                if constexpr (!std::is_same_v<std::decay_t<decltype(body)>, std::monostate>)
                    fields(writer, body);
            },
            event.body);
    }
}

std::vector<std::byte> encode(std::span<const Event> events) {
    std::vector<std::byte> out;
    out.reserve(events.size() * 16 + 16);
    encodeTo(out, events);
    return out;
}

Result<std::vector<Event>> decode(std::span<const std::byte> data) {
    Reader reader(data);
    ByteReader& bytes = reader.bytes();
    const auto version = bytes.fixed<std::uint8_t>();
    if (!bytes.ok() || version != kCodecVersion)
        return makeError(ErrorKind::Refused, "The events are in format {}, but this program reads format {}.", version,
                         kCodecVersion);
    const std::size_t count = bytes.count(kMinEventBytes);
    std::vector<Event> events;
    events.reserve(count);
    Step step = 0;
    std::uint64_t ns = 0;
    for (std::size_t i = 0; i < count && bytes.ok(); ++i) {
        Event& event = events.emplace_back();
        const auto kind = bytes.fixed<std::uint8_t>();
        const std::uint64_t nextStep = std::uint64_t{step} + static_cast<std::uint64_t>(bytes.signedVarint());
        ns += static_cast<std::uint64_t>(bytes.signedVarint());
        if (nextStep > std::numeric_limits<Step>::max())
            bytes.fail();
        event.step = step = static_cast<Step>(nextStep);
        event.ns = static_cast<std::int64_t>(ns);
        if (bytes.ok() && !readBody(reader, kind, event.body))
            return makeError(ErrorKind::Refused,
                             "Event {} of {} is of the unknown kind {}; the data is damaged or from a newer program.",
                             i, count, kind);
        if (!bytes.ok())
            return makeError(ErrorKind::Refused, "Event {} of {} is damaged near byte {} of {}.", i, count,
                             bytes.position(), data.size());
    }
    if (!bytes.ok())
        return makeError(ErrorKind::Refused, "The events are damaged near byte {} of {}.", bytes.position(),
                         data.size());
    if (!bytes.atEnd())
        return makeError(ErrorKind::Refused, "{} bytes follow the last of {} events; the data is damaged.",
                         bytes.remaining(), count);
    return events;
}

} // namespace kvatlas::trace
