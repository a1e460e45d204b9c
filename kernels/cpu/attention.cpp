// SPDX-License-Identifier: Apache-2.0
// Attention over block tables, in segments of 256 slots counted from slot 0 (kernels.h has the order of the sums).
// Queries that read the same keys (heads of a KV group, rows of a prefill) share each load of K and V.
#include "kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention.cpp"
#include <hwy/foreach_target.h>
// foreach_target.h stands before all that includes highway.h.
#include "kernels/cpu/simd-inl.h"

#if KVATLAS_SIMD
HWY_BEFORE_NAMESPACE();
namespace kvatlas::kernels::cpu::HWY_NAMESPACE {
namespace {

constexpr std::uint32_t kChunks = kSegmentSlots / 16;
// Sums that registers hold beside what is loaded.
constexpr int kSums = HWY_TARGET == HWY_AVX2 ? 12 : 24;

constexpr std::size_t padded(std::size_t value) {
    return (value + 15) / 16 * 16;
}

// The scratch memory of a worker.
struct Scratch {
    float* scores;  // [kMaxQueries][kSegmentSlots]: scores, then p
    float* queries; // [headDim][kMaxQueries]
    float* output;  // [kMaxQueries][padded headDim]: of the segment
    float* state;   // [kMaxQueries][2 + padded headDim]: maximum, sum, output of the segments so far
    std::byte* k;   // gathered K chunks, [headDim][16] each
    std::byte* v;   // gathered V rows, padded headDim each

    Scratch(std::byte* at, std::uint32_t headDim) {
        const std::size_t dim = padded(headDim);
        scores = reinterpret_cast<float*>(at);
        queries = scores + kMaxQueries * kSegmentSlots;
        output = queries + dim * kMaxQueries;
        state = output + dim * kMaxQueries;
        k = reinterpret_cast<std::byte*>(state + (dim + 16) * kMaxQueries);
        v = k + dim * kSegmentSlots * 4;
    }
};

// Where the K and V of a segment lie.
struct Segment {
    std::uint32_t count = 0;     // slots that any query reads
    const std::byte* k[kChunks]; // chunk of 16 keys: element (d, key) at k + (d * kStride + key) * width
    std::size_t kStride = 0;     // elements
    const std::byte* v[kSegmentSlots];
    // Where it lies in the arena, a slot's share of its block at a time, to be asked for early: blocks are scattered,
    // so that the processor's own prefetch does not find them.
    const std::byte* kShare[kSegmentSlots];
    const std::byte* vShare[kSegmentSlots];
    std::size_t kShareBytes = 0, vShareBytes = 0;
};

HWY_INLINE void prefetchShare(const std::byte* at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(at + i, 0, 2);
}

template <int kBytes>
HWY_INLINE void copyColumns(const std::byte* from, std::size_t fromStep, std::uint32_t count, std::byte* to,
                            std::size_t toStep) {
    for (std::size_t d = 0; d < count; ++d)
        __builtin_memcpy(to + d * toStep, from + d * fromStep, kBytes);
}

// Eight rows of eight f16 become eight columns; columns are 16 keys apart.
HWY_INLINE void transposeEight(const std::byte* const* rows, std::byte* to) {
    const hn::FixedTag<std::uint16_t, 8> d16;
    const hn::FixedTag<std::uint32_t, 4> d32;
    const hn::FixedTag<std::uint64_t, 2> d64;
    using V16 = hn::Vec<hn::FixedTag<std::uint16_t, 8>>;
    V16 v[8];
    HWY_UNROLL(8) for (int i = 0; i < 8; ++i) v[i] = hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(rows[i]));
    hn::Vec<hn::FixedTag<std::uint32_t, 4>> pairs[8]; // [rows 2i, 2i+1][columns 0-3 or 4-7]
    HWY_UNROLL(4) for (int i = 0; i < 4; ++i) {
        pairs[2 * i] = hn::BitCast(d32, hn::InterleaveLower(d16, v[2 * i], v[2 * i + 1]));
        pairs[2 * i + 1] = hn::BitCast(d32, hn::InterleaveUpper(d16, v[2 * i], v[2 * i + 1]));
    }
    HWY_UNROLL(2) for (int half = 0; half < 2; ++half) { // columns 4*half ..
        const auto low0 = hn::BitCast(d64, hn::InterleaveLower(d32, pairs[half], pairs[2 + half]));
        const auto high0 = hn::BitCast(d64, hn::InterleaveUpper(d32, pairs[half], pairs[2 + half]));
        const auto low1 = hn::BitCast(d64, hn::InterleaveLower(d32, pairs[4 + half], pairs[6 + half]));
        const auto high1 = hn::BitCast(d64, hn::InterleaveUpper(d32, pairs[4 + half], pairs[6 + half]));
        std::uint16_t* at = reinterpret_cast<std::uint16_t*>(to) + 64 * half;
        hn::StoreU(hn::BitCast(d16, hn::InterleaveLower(d64, low0, low1)), d16, at);
        hn::StoreU(hn::BitCast(d16, hn::InterleaveUpper(d64, low0, low1)), d16, at + 16);
        hn::StoreU(hn::BitCast(d16, hn::InterleaveLower(d64, high0, high1)), d16, at + 32);
        hn::StoreU(hn::BitCast(d16, hn::InterleaveUpper(d64, high0, high1)), d16, at + 48);
    }
}

// Blocks of one token in f16: `count` keys from `first` of the segment on, each headDim values in a row.
void gatherSingleTokens(const Segment& segment, std::uint32_t first, std::uint32_t count, std::uint32_t headDim,
                        std::byte* to) {
    const std::byte* rows[16];
    for (std::uint32_t i = 0; i < 16; ++i) // lanes beyond count are never used
        rows[i] = segment.kShare[first + (i < count ? i : count - 1)];
    for (std::uint32_t d = 0; d < headDim; d += 8) {
        transposeEight(rows, to + std::size_t{d} * 32);
        transposeEight(rows + 8, to + std::size_t{d} * 32 + 16);
        for (const std::byte*& row : rows)
            row += 16;
    }
}

void gatherKeys(const AttendTask& task, const std::uint32_t* table, std::uint32_t first, std::uint32_t count,
                std::byte* to) {
    const KvLayout& layout = task.arena->layout;
    const std::size_t width = elementBytes(layout.kFormat);
    for (std::uint32_t i = 0; i < count;) {
        const std::uint32_t slot = first + i, inBlock = slot % layout.blockTokens;
        const std::uint32_t left = layout.blockTokens - inBlock;
        const std::uint32_t run = left < count - i ? left : count - i;
        const std::byte* from = task.arena->blocks + table[slot / layout.blockTokens] * layout.blockBytes() +
                                layout.kOffset(task.layer, task.kvHead) + inBlock * width;
        const std::size_t step = layout.blockTokens * width;
        std::byte* at = to + i * width;
        if (run * width == 2)
            copyColumns<2>(from, step, layout.headDim, at, 16 * width);
        else if (run * width == 4)
            copyColumns<4>(from, step, layout.headDim, at, 16 * width);
        else if (run * width == 8)
            copyColumns<8>(from, step, layout.headDim, at, 16 * width);
        else
            for (std::uint32_t d = 0; d < layout.headDim; ++d)
                __builtin_memcpy(at + d * 16 * width, from + d * step, run * width);
        i += run;
    }
}

void locate(const AttendTask& task, std::uint32_t first, std::uint32_t count, Segment& segment) {
    const KvLayout& layout = task.arena->layout;
    const std::uint32_t* table = task.batch->blockTables[task.batch->sequenceOf[task.firstRow]];
    const std::size_t kWidth = elementBytes(layout.kFormat), vWidth = elementBytes(layout.vFormat);
    segment.count = count;
    segment.kShareBytes = layout.headDim * kWidth;
    segment.vShareBytes = layout.headDim * vWidth;
    const bool direct = layout.blockTokens % 16 == 0;
    segment.kStride = direct ? layout.blockTokens : 16;
    const std::size_t kAt = layout.kOffset(task.layer, task.kvHead), vAt = layout.vOffset(task.layer, task.kvHead);
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t slot = first + i, inBlock = slot % layout.blockTokens;
        const std::byte* block = task.arena->blocks + table[slot / layout.blockTokens] * layout.blockBytes();
        segment.kShare[i] = block + kAt + inBlock * segment.kShareBytes;
        segment.v[i] = segment.vShare[i] = block + vAt + inBlock * segment.vShareBytes;
        if (direct && i % 16 == 0)
            segment.k[i / 16] = block + kAt + inBlock * kWidth;
    }
    for (std::uint32_t i = count; i % 16 != 0; ++i) // scoring goes by whole chunks
        segment.vShare[i] = segment.vShare[count - 1];
}

// What scoring and summing need beyond locate(): copies of what does not lie in whole vectors.
void gather(const AttendTask& task, std::uint32_t first, const Scratch& scratch, Segment& segment) {
    const KvLayout& layout = task.arena->layout;
    const std::uint32_t* table = task.batch->blockTables[task.batch->sequenceOf[task.firstRow]];
    const std::size_t kWidth = elementBytes(layout.kFormat), vWidth = elementBytes(layout.vFormat);
    const std::uint32_t count = segment.count;
    if (layout.blockTokens % 16 != 0)
        for (std::uint32_t c = 0; c * 16 < count; ++c) {
            std::byte* to = scratch.k + std::size_t{c} * 16 * padded(layout.headDim) * kWidth;
            const std::uint32_t keys = count - c * 16 < 16 ? count - c * 16 : 16;
            if (layout.blockTokens == 1 && kWidth == 2 && layout.headDim % 8 == 0)
                gatherSingleTokens(segment, c * 16, keys, layout.headDim, to);
            else
                gatherKeys(task, table, first + c * 16, keys, to);
            segment.k[c] = to;
        }
    if (layout.headDim % 16 != 0) { // channels by whole vectors: rows are copied to where they may be read further
        const std::size_t rowBytes = padded(layout.headDim) * vWidth;
        for (std::uint32_t i = 0; i < count; ++i) {
            __builtin_memcpy(scratch.v + i * rowBytes, segment.v[i], layout.headDim * vWidth);
            segment.v[i] = scratch.v + i * rowBytes;
        }
    }
}

template <bool kHalf> HWY_INLINE VF loadStored(const std::byte* at, std::size_t element) {
    if constexpr (kHalf)
        return loadHalf(at + 2 * element);
    else
        return hn::LoadU(DF(), reinterpret_cast<const float*>(at) + element);
}

// Scores of kQueries queries, the first at queries[0][0], with the keys of kChunksAtOnce chunks; d ascending, one lane
// a key.
template <bool kHalf, int kQueries, int kChunksAtOnce>
HWY_INLINE void scoreChunks(const Segment& segment, std::uint32_t chunk, const float* queries, std::uint32_t headDim,
                            float* scores) {
    const std::byte* const* k = segment.k + chunk;
    const std::byte* const* vShare = segment.vShare + 16 * chunk;
    const std::size_t stride = segment.kStride;
    constexpr int kCount = kChunksAtOnce * kVectors;
    VF sums[kCount][kQueries];
    HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) {
        HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) sums[v][q] = hn::Zero(DF());
    }
    for (std::size_t d = 0; d < headDim; ++d) {
        if (d < 16 * kChunksAtOnce)
            prefetchShare(vShare[d], segment.vShareBytes);
        VF keys[kCount];
        HWY_UNROLL(16)
        for (int v = 0; v < kCount; ++v)
            keys[v] = loadStored<kHalf>(k[v / kVectors], d * stride + static_cast<std::size_t>(v % kVectors * kLanes));
        HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
            const VF value = hn::Set(DF(), queries[d * kMaxQueries + q]);
            HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) sums[v][q] = hn::MulAdd(keys[v], value, sums[v][q]);
        }
    }
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16)
        for (int v = 0; v < kCount; ++v)
            hn::StoreU(sums[v][q], DF(), scores + q * kSegmentSlots + v * kLanes);
    }
}

template <bool kHalf, int kQueries>
HWY_NOINLINE void scoreSegment(const Segment& segment, const float* queries, std::uint32_t headDim, float* scores) {
    constexpr int kFit = kSums / (kQueries * kVectors);
    constexpr int kAtOnce = kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
    const std::uint32_t chunks = (segment.count + 15) / 16;
    std::uint32_t c = 0;
    for (; c + kAtOnce <= chunks; c += kAtOnce)
        scoreChunks<kHalf, kQueries, kAtOnce>(segment, c, queries, headDim, scores + c * 16);
    for (; c < chunks; ++c)
        scoreChunks<kHalf, kQueries, 1>(segment, c, queries, headDim, scores + c * 16);
}

// scores [count] -> p = exp(s * scale - max); lanes from count on become 0. Sum by lane i mod 16.
HWY_NOINLINE void softmax(float* scores, std::uint32_t count, float scale, float& maximum, float& sum) {
    const DF df;
    const std::uint32_t end = (count + 15) / 16 * 16;
    const VF factor = hn::Set(df, scale);
    for (std::uint32_t i = 0; i < end; i += kLanes)
        hn::StoreU(hn::Mul(hn::LoadU(df, scores + i), factor), df, scores + i);
    for (std::uint32_t i = count; i < end; ++i)
        scores[i] = -__builtin_inff();
    VF largest = hn::Set(df, -__builtin_inff());
    for (std::uint32_t i = 0; i < end; i += kLanes)
        largest = hn::Max(largest, hn::LoadU(df, scores + i));
    maximum = hn::GetLane(hn::MaxOfLanes(df, largest));
    const VF top = hn::Set(df, maximum);
    VF partial[kVectors];
    for (int v = 0; v < kVectors; ++v)
        partial[v] = hn::Zero(df);
    for (std::uint32_t i = 0; i < end; i += 16)
        HWY_UNROLL(4) for (int v = 0; v < kVectors; ++v) {
            const VF p = exponential(hn::Sub(hn::LoadU(df, scores + i + kLanes * v), top));
            hn::StoreU(p, df, scores + i + kLanes * v);
            partial[v] = hn::Add(partial[v], p);
        }
    alignas(64) float lanes[16];
    for (int v = 0; v < kVectors; ++v)
        hn::Store(partial[v], df, lanes + kLanes * v);
    sum = foldLanes(lanes);
}

// output [query][channels of kCount vectors] += p[slot] * v[slot], slots [first, last) ascending, one lane a channel.
template <bool kHalf, int kQueries, int kCount>
HWY_INLINE void addChannels(const Segment& segment, const Segment& next, std::uint32_t first, std::uint32_t last,
                            std::size_t channel, const float* p, float* output, std::size_t outputStride) {
    VF sums[kQueries][kCount];
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16)
        for (int v = 0; v < kCount; ++v)
            sums[q][v] = hn::LoadU(DF(), output + q * outputStride + channel + static_cast<std::size_t>(v * kLanes));
    }
    for (std::uint32_t slot = first; slot < last; ++slot) {
        if (channel == 0 && slot < next.count)
            prefetchShare(next.kShare[slot], next.kShareBytes);
        VF values[kCount];
        HWY_UNROLL(16)
        for (int v = 0; v < kCount; ++v)
            values[v] = loadStored<kHalf>(segment.v[slot], channel + static_cast<std::size_t>(v * kLanes));
        HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
            const VF weight = hn::Set(DF(), p[q * kSegmentSlots + slot]);
            HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) sums[q][v] = hn::MulAdd(weight, values[v], sums[q][v]);
        }
    }
    HWY_UNROLL(16) for (int q = 0; q < kQueries; ++q) {
        HWY_UNROLL(16)
        for (int v = 0; v < kCount; ++v)
            hn::StoreU(sums[q][v], DF(), output + q * outputStride + channel + static_cast<std::size_t>(v * kLanes));
    }
}

template <bool kHalf, int kQueries>
HWY_NOINLINE void addValues(const Segment& segment, const Segment& next, std::uint32_t first, std::uint32_t last,
                            const float* p, std::size_t dim, float* output) {
    constexpr int kFit = kSums / kQueries;
    constexpr int kCount = kFit >= 4 ? 4 : kFit >= 2 ? 2 : 1;
    std::size_t channel = 0;
    for (; channel + kCount * kLanes <= dim; channel += kCount * kLanes)
        addChannels<kHalf, kQueries, kCount>(segment, next, first, last, channel, p, output, dim);
    for (; channel < dim; channel += kLanes)
        addChannels<kHalf, kQueries, 1>(segment, next, first, last, channel, p, output, dim);
}

// Takes queries off [first, last) in pieces of 6, 4, 3, 2, 1.
#define KVATLAS_QUERY_PIECES(count, CALL)                                                                              \
    switch (count) {                                                                                                   \
    case 1:                                                                                                            \
        CALL(1) break;                                                                                                 \
    case 2:                                                                                                            \
        CALL(2) break;                                                                                                 \
    case 3:                                                                                                            \
        CALL(3) break;                                                                                                 \
    case 4:                                                                                                            \
        CALL(4) break;                                                                                                 \
    default:                                                                                                           \
        CALL(6) break;                                                                                                 \
    }
HWY_INLINE std::uint32_t pieceOf(std::uint32_t left) {
    return left >= 6 ? 6 : left == 5 ? 3 : left;
}

template <bool kHalf>
void scoreQueries(const Segment& segment, const Scratch& scratch, std::uint32_t first, std::uint32_t last,
                  std::uint32_t headDim) {
    for (std::uint32_t q = first; q < last;) {
        const std::uint32_t piece = pieceOf(last - q);
#define KVATLAS_SCORE(n)                                                                                               \
    scoreSegment<kHalf, n>(segment, scratch.queries + q, headDim, scratch.scores + q * kSegmentSlots);
        KVATLAS_QUERY_PIECES(piece, KVATLAS_SCORE)
#undef KVATLAS_SCORE
        q += piece;
    }
}

template <bool kHalf>
void addQueries(const Segment& segment, const Segment& next, const Scratch& scratch, std::uint32_t first,
                std::uint32_t last, std::uint32_t heads, const std::uint32_t* counts, std::size_t dim) {
    for (std::uint32_t q = first; q < last;) {
        const std::uint32_t piece = pieceOf(last - q);
        // Positions ascend with the rows: the first query of the piece reads the fewest slots.
        const std::uint32_t common = counts[q / heads];
        float* p = scratch.scores + q * kSegmentSlots;
        float* output = scratch.output + q * dim;
#define KVATLAS_ADD(n) addValues<kHalf, n>(segment, next, 0, common, p, dim, output);
        KVATLAS_QUERY_PIECES(piece, KVATLAS_ADD)
#undef KVATLAS_ADD
        for (std::uint32_t i = 0; i < piece; ++i)
            if (counts[(q + i) / heads] > common)
                addValues<kHalf, 1>(segment, next, common, counts[(q + i) / heads], p + i * kSegmentSlots, dim,
                                    output + i * dim);
        q += piece;
    }
}
#undef KVATLAS_QUERY_PIECES

// (maximum, sum, output) of the segments so far, and of the next one. The first is taken as it is.
void combineInto(float* state, bool isFirst, float maximum, float sum, const float* output, std::uint32_t headDim) {
    if (isFirst) {
        state[0] = maximum;
        state[1] = sum;
        __builtin_memcpy(state + 2, output, headDim * 4);
        return;
    }
    const float top = state[0] > maximum ? state[0] : maximum;
    alignas(64) float factors[16] = {state[0] - top, maximum - top};
    for (int i = 0; i < 2; i += kLanes)
        hn::Store(exponential(hn::Load(DF(), factors + i)), DF(), factors + i);
    const float old = factors[0], fresh = factors[1];
    state[0] = top;
    state[1] = __builtin_fmaf(state[1], old, sum * fresh);
    const VF oldFactor = hn::Set(DF(), old), freshFactor = hn::Set(DF(), fresh);
    std::uint32_t i = 0;
    for (; i + kLanes <= headDim; i += kLanes) {
        const VF added = hn::Mul(hn::LoadU(DF(), output + i), freshFactor);
        hn::StoreU(hn::MulAdd(hn::LoadU(DF(), state + 2 + i), oldFactor, added), DF(), state + 2 + i);
    }
    for (; i < headDim; ++i)
        state[2 + i] = __builtin_fmaf(state[2 + i], old, output[i] * fresh);
}

void finish(const float* state, std::uint32_t headDim, float* out) {
    const VF sum = hn::Set(DF(), state[1]);
    std::uint32_t i = 0;
    for (; i + kLanes <= headDim; i += kLanes)
        hn::StoreU(hn::Div(hn::LoadU(DF(), state + 2 + i), sum), DF(), out + i);
    for (; i < headDim; ++i)
        out[i] = state[2 + i] / state[1];
}

// Queries of the task to [headDim][kMaxQueries].
void transposeQueries(const AttendTask& task, const Scratch& scratch) {
    const std::uint32_t headDim = task.arena->layout.headDim;
    for (std::uint32_t row = task.firstRow; row < task.lastRow; ++row)
        for (std::uint32_t h = 0; h < task.heads; ++h) {
            const float* from = task.q + (std::size_t{row} * task.queryHeads + task.firstHead + h) * headDim;
            float* to = scratch.queries + (row - task.firstRow) * task.heads + h;
            for (std::size_t d = 0; d < headDim; ++d)
                to[d * kMaxQueries] = from[d];
        }
}

// Slots of segment `index` that a row reads.
HWY_INLINE std::uint32_t slotsRead(const AttendTask& task, std::uint32_t row, std::uint32_t index) {
    const std::uint32_t length = task.batch->positionOf[row] + 1, start = index * kSegmentSlots;
    const std::uint32_t beyond = length > start ? length - start : 0;
    return beyond < kSegmentSlots ? beyond : kSegmentSlots;
}

// One segment for all queries of the task: p, sums and output in scratch. `next` is fetched meanwhile.
// Returns the first query that reads any slot of it; positions ascend, so that all queries after it do.
std::uint32_t runSegment(const AttendTask& task, const Scratch& scratch, std::uint32_t index, Segment& segment,
                         const Segment& next, float* maxima, float* sums) {
    const KvLayout& layout = task.arena->layout;
    const std::uint32_t rows = task.lastRow - task.firstRow, queries = rows * task.heads;
    std::uint32_t counts[kMaxQueries], firstRow = rows;
    for (std::uint32_t r = rows; r-- > 0;) {
        counts[r] = slotsRead(task, task.firstRow + r, index);
        firstRow = counts[r] > 0 ? r : firstRow;
    }
    const std::uint32_t first = firstRow * task.heads;
    gather(task, index * kSegmentSlots, scratch, segment);
    if (layout.kFormat == StorageFormat::F16)
        scoreQueries<true>(segment, scratch, first, queries, layout.headDim);
    else
        scoreQueries<false>(segment, scratch, first, queries, layout.headDim);
    const std::size_t dim = padded(layout.headDim);
    for (std::uint32_t q = first; q < queries; ++q)
        softmax(scratch.scores + q * kSegmentSlots, counts[q / task.heads], task.scale, maxima[q], sums[q]);
    for (std::size_t i = first * dim; i < queries * dim; ++i)
        scratch.output[i] = 0.0f;
    if (layout.vFormat == StorageFormat::F16)
        addQueries<true>(segment, next, scratch, first, queries, task.heads, counts, dim);
    else
        addQueries<false>(segment, next, scratch, first, queries, task.heads, counts, dim);
    return first;
}

// The segment `index` of the task; none from lastSegment on.
void locateSegment(const AttendTask& task, std::uint32_t index, Segment& segment) {
    segment.count = 0;
    if (index < task.lastSegment)
        locate(task, index * kSegmentSlots, slotsRead(task, task.lastRow - 1, index), segment);
}

void attend(const AttendTask& task) {
    const std::uint32_t headDim = task.arena->layout.headDim;
    const Scratch scratch(task.scratch, headDim);
    const std::uint32_t queries = (task.lastRow - task.firstRow) * task.heads;
    const std::size_t dim = padded(headDim), stateFloats = dim + 16;
    transposeQueries(task, scratch);
    float maxima[kMaxQueries], sums[kMaxQueries];
    Segment segments[2];
    locateSegment(task, task.firstSegment, segments[0]);
    for (std::uint32_t i = 0; i < segments[0].count; ++i)
        prefetchShare(segments[0].kShare[i], segments[0].kShareBytes);
    for (std::uint32_t s = task.firstSegment; s < task.lastSegment; ++s) {
        Segment& current = segments[(s - task.firstSegment) % 2];
        Segment& next = segments[(s - task.firstSegment + 1) % 2];
        locateSegment(task, s + 1, next);
        for (std::uint32_t q = runSegment(task, scratch, s, current, next, maxima, sums); q < queries; ++q)
            combineInto(scratch.state + q * stateFloats, s == 0, maxima[q], sums[q], scratch.output + q * dim, headDim);
    }
    for (std::uint32_t q = 0; q < queries; ++q) {
        const std::size_t row = task.firstRow + q / task.heads, head = task.firstHead + q % task.heads;
        finish(scratch.state + q * stateFloats, headDim, task.out + (row * task.queryHeads + head) * headDim);
    }
}

void segmentOnly(const AttendTask& task, float* partials) {
    const std::uint32_t headDim = task.arena->layout.headDim;
    const Scratch scratch(task.scratch, headDim);
    transposeQueries(task, scratch);
    float maxima[kMaxQueries], sums[kMaxQueries];
    Segment segment, none;
    locateSegment(task, task.firstSegment, segment);
    for (std::uint32_t i = 0; i < segment.count; ++i)
        prefetchShare(segment.kShare[i], segment.kShareBytes);
    runSegment(task, scratch, task.firstSegment, segment, none, maxima, sums);
    for (std::uint32_t q = 0; q < task.heads; ++q) {
        float* to = partials + q * partialFloats(headDim);
        to[0] = maxima[q];
        to[1] = sums[q];
        __builtin_memcpy(to + 2, scratch.output + q * padded(headDim), headDim * 4);
    }
}

void combine(const float* partials, std::size_t stride, std::uint32_t segments, std::uint32_t headDim, float* state,
             float* out) {
    for (std::uint32_t s = 0; s < segments; ++s) {
        const float* from = partials + s * stride;
        combineInto(state, s == 0, from[0], from[1], from + 2, headDim);
    }
    finish(state, headDim, out);
}

constexpr AttentionFunctions kAttention = {attend, segmentOnly, combine};

} // namespace
const AttentionFunctions& attentionTable() {
    return kAttention;
}
} // namespace kvatlas::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif // KVATLAS_SIMD

#if HWY_ONCE
namespace kvatlas::kernels::cpu {

std::size_t attendScratchBytes(std::uint32_t headDim) {
    const std::size_t dim = (std::size_t{headDim} + 15) / 16 * 16;
    const std::size_t floats = kMaxQueries * kSegmentSlots + kMaxQueries * (2 * dim + dim + 16);
    return floats * 4 + 2 * dim * kSegmentSlots * 4;
}

const AttentionFunctions* attentionFunctions(Target target) {
    switch (target) {
#if HWY_ARCH_X86
    case Target::Avx2:
        return &N_AVX2::attentionTable();
    case Target::Avx512:
    case Target::Avx512Vnni:
        return &N_AVX3::attentionTable();
#else
    case Target::Neon:
        return &N_NEON::attentionTable();
#endif
    default:
        return nullptr;
    }
}

} // namespace kvatlas::kernels::cpu
#endif
