// SPDX-License-Identifier: Apache-2.0
// The engine's only output. An Event is a plain value that carries meaning and reasons, never colours or text for a
// view. Any thread; a delivered event is immutable.
//
// An event outside a step belongs to the step about to start. The state at step k is the state after its StepEnded.
// Which event may follow which, and what each does to the state: core/state/cache_state.h.
#pragma once

#include "core/base/ids.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kvatlas::trace {

enum class PreemptionReason : std::uint8_t { BlocksExhausted = 1, Command = 2 };
enum class FinishReason : std::uint8_t {
    EndToken = 1,  // the model ended its turn
    StopText = 2,  // one of the request's stop texts appeared
    MaxTokens = 3, // the request's max_tokens
    Context = 4,   // max_model_len
    Cancelled = 5, // by command
    Refused = 6,   // can never fit; the detail holds the numbers
};

struct ModelShape {
    std::string name;         // of the model file, without .gguf
    std::string sha256;       // of the whole file, hex
    std::string architecture; // "llama"
    std::uint32_t layers = 0, queryHeads = 0, kvHeads = 0, headDim = 0, contextTokens = 0, vocabulary = 0;
    std::uint64_t parameters = 0;
    friend bool operator==(const ModelShape&, const ModelShape&) = default;
};

enum class Tier : std::uint8_t { Device = 1, Host = 2, Disk = 3 };

struct PoolShape {
    PoolId pool;
    Tier tier = Tier::Device;
    std::string kFormat, vFormat; // "f16", ...
    std::uint32_t blocks = 0, blockTokens = 0;
    std::uint64_t blockBytes = 0; // what the allocator really takes for one block
    friend bool operator==(const PoolShape&, const PoolShape&) = default;
};

struct RunStarted {
    ModelShape model;
    std::vector<PoolShape> pools;
    std::string backend;    // "cpu, AVX-512 VNNI", "reference"
    std::string arithmetic; // "exact" | "fast"
    std::uint32_t threads = 1;
    std::string strategyJson, scenarioJson; // complete, every key written out
    std::uint64_t seed = 0;
    std::string programVersion, machine;
    friend bool operator==(const RunStarted&, const RunStarted&) = default;
};

struct CommandApplied {
    std::string command; // "cancel", "pause", ...
    RequestId request;   // 0 when the command names none
    friend bool operator==(const CommandApplied&, const CommandApplied&) = default;
};

struct RequestArrived {
    RequestId request;
    std::vector<TokenId> promptTokens;
    std::uint32_t maxTokens = 0;
    std::string title; // the scenario's name for it, or the first words of its prompt
    friend bool operator==(const RequestArrived&, const RequestArrived&) = default;
};

struct RequestAdmitted {
    RequestId request;
    std::uint32_t cachedTokens = 0; // prompt tokens taken from the prefix cache
    friend bool operator==(const RequestAdmitted&, const RequestAdmitted&) = default;
};

struct RequestPreempted {
    RequestId request;
    PreemptionReason reason = PreemptionReason::BlocksExhausted;
    std::uint32_t tokensLost = 0; // slots that must be computed again
    friend bool operator==(const RequestPreempted&, const RequestPreempted&) = default;
};

struct RequestResumed {
    RequestId request;
    friend bool operator==(const RequestResumed&, const RequestResumed&) = default;
};

struct RequestFinished {
    RequestId request;
    FinishReason reason = FinishReason::EndToken;
    std::uint32_t outputTokens = 0;
    std::string detail; // for Refused: the sentence with the numbers
    friend bool operator==(const RequestFinished&, const RequestFinished&) = default;
};

struct SequenceStarted {
    SequenceId sequence;
    RequestId request;
    friend bool operator==(const SequenceStarted&, const SequenceStarted&) = default;
};

struct SequenceEnded {
    SequenceId sequence;
    friend bool operator==(const SequenceEnded&, const SequenceEnded&) = default;
};

// Tokens [firstPosition, firstPosition + tokens) of a sequence are computed in this step.
struct BatchEntry {
    SequenceId sequence;
    Position firstPosition = 0;
    std::uint32_t tokens = 0;
    bool prefill = false; // computes prompt (or recomputed) tokens; its last token may still be sampled from
    friend bool operator==(const BatchEntry&, const BatchEntry&) = default;
};

struct StepStarted {
    std::vector<BatchEntry> batch;
    std::uint32_t waitingRequests = 0;
    friend bool operator==(const StepStarted&, const StepStarted&) = default;
};

struct StepEnded {
    std::int64_t computeNs = 0;  // time in the forward pass
    std::int64_t waitNs = 0;     // time the engine waited for room in the event ring
    std::uint64_t stateHash = 0; // the engine's own, after this step (state_hash.h); the folded state must equal it
    friend bool operator==(const StepEnded&, const StepEnded&) = default;
};

// Blocks appended to a sequence's block table, from logical index firstLogical on. Each was free; each is now active
// with one reference, or, where the sequence had it reserved, turns from reserved to active.
struct BlocksAllocated {
    SequenceId sequence;
    std::uint32_t firstLogical = 0;
    std::vector<BlockId> blocks;
    friend bool operator==(const BlocksAllocated&, const BlocksAllocated&) = default;
};

// Blocks put into a sequence's table with no slot written yet (contiguous layout): free -> reserved. Ascending run.
struct BlocksReserved {
    SequenceId sequence;
    std::uint32_t firstLogical = 0;
    BlockId first;
    std::uint32_t count = 0;
    friend bool operator==(const BlocksReserved&, const BlocksReserved&) = default;
};

enum class ReleaseReason : std::uint8_t { Finished = 1, Preempted = 2 };

// Blocks leave a sequence's table (all of it, active and reserved), in this order onto the free list.
struct BlocksReleased {
    SequenceId sequence;
    ReleaseReason reason = ReleaseReason::Finished;
    std::vector<BlockId> blocks;
    friend bool operator==(const BlocksReleased&, const BlocksReleased&) = default;
};

// K and V of tokens [firstPosition, firstPosition + count) were written into their slots, in every layer.
struct SlotsWritten {
    SequenceId sequence;
    Position firstPosition = 0;
    std::uint32_t count = 0;
    friend bool operator==(const SlotsWritten&, const SlotsWritten&) = default;
};

struct Candidate {
    TokenId token = 0;
    float probability = 0; // before truncation by top-k, top-p, min-p; at temperature 1 when greedy
    friend bool operator==(const Candidate&, const Candidate&) = default;
};

struct TokenSampled {
    RequestId request;
    SequenceId sequence;
    Position position = 0; // the position the new token will take
    TokenId token = 0;
    std::array<Candidate, 8> top{}; // most probable first
    friend bool operator==(const TokenSampled&, const TokenSampled&) = default;
};

enum class KernelKind : std::uint8_t {
    Embed = 1,
    RmsNorm = 2,
    Multiply = 3,
    Rope = 4,
    StoreKv = 5,
    Attend = 6,
    SiluMultiply = 7,
    Add = 8,
    Head = 9,
    Sample = 10
};

// Time and bytes of one kernel, summed over the step (layer = kAllLayers) or for one layer.
struct KernelSpan {
    static constexpr std::uint16_t kAllLayers = 0xFFFF;
    KernelKind kernel = KernelKind::Embed;
    LayerId layer{kAllLayers};
    std::uint32_t calls = 0;
    std::int64_t durationNs = 0;
    std::uint64_t bytes = 0, flops = 0;
    friend bool operator==(const KernelSpan&, const KernelSpan&) = default;
};

struct MemoryCounter {
    std::uint64_t arenaBytes = 0;    // what the KV allocator holds, to the byte
    std::uint64_t residentBytes = 0; // of the process
    friend bool operator==(const MemoryCounter&, const MemoryCounter&) = default;
};

struct EventsLost {
    std::uint64_t count = 0; // Sample events dropped since the last such report
    friend bool operator==(const EventsLost&, const EventsLost&) = default;
};

using EventBody = std::variant<
#define KVATLAS_EVENT(id, Type, name, class) Type,
#include "core/trace/event_kinds.def"
#undef KVATLAS_EVENT
    std::monostate>; // monostate: no event, never delivered

enum class EventClass : std::uint8_t { State, Sample };

enum class EventKind : std::uint8_t {
#define KVATLAS_EVENT(id, Type, name, class) Type = id,
#include "core/trace/event_kinds.def"
#undef KVATLAS_EVENT
};

struct Event {
    Step step = 0;
    std::int64_t ns = 0; // since RunStarted, less the time for which the run was held
    EventBody body = std::monostate{};
    friend bool operator==(const Event&, const Event&) = default;

    EventKind kind() const; // REQUIRES: not monostate
};

std::string_view nameOf(EventKind kind);
EventClass classOf(EventKind kind);

} // namespace kvatlas::trace
