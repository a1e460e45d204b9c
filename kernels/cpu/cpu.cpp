// SPDX-License-Identifier: Apache-2.0
// The driver: cuts each call into units of work, hands them to the stream's threads, and calls the target's functions.
#include "kernels/cpu/cpu.h"

#include "kernels/cpu/packed_matrix.h"
#include "kernels/cpu/stream.h"
#include "kernels/cpu/targets.h"

#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <vector>

namespace kvatlas::kernels {

namespace cpu {

namespace {

// Rows of a call below which one thread does the row-by-row functions: starting the others costs about as much.
constexpr std::uint32_t kRowsWorthSharing = 8;
// Units per thread: enough that a thread that loses its processor for a while does not hold up the rest.
constexpr std::uint32_t kUnitsPerThread = 6;
// Bytes of weights of a unit that meets many tokens: they stay in the L2 cache while the tokens pass.
constexpr std::size_t kUnitBytes = std::size_t{256} << 10;

CpuStream& own(Stream& stream) {
    return static_cast<CpuStream&>(stream);
}
const CpuMatrix& own(const PackedMatrix& matrix) {
    return static_cast<const CpuMatrix&>(matrix);
}

std::unique_ptr<Stream> createStream(unsigned threads) {
    if (cpuRefusal())
        return nullptr;
    return std::make_unique<CpuStream>(threads);
}

std::unique_ptr<PackedMatrix> createMatrix(WeightFormat format, std::uint32_t rows, std::uint32_t cols,
                                           const std::byte* data) {
    const SubnormalGuard guard;
    return std::make_unique<CpuMatrix>(format, rows, cols, data);
}

// --- products -------------------------------------------------------------------------------------------------------

bool runsFast(const CpuMatrix& matrix, Arithmetic arithmetic) {
    return arithmetic != Arithmetic::Exact && tileLayout(matrix.format).coded;
}

std::uint32_t tileCount(std::uint32_t n, std::uint32_t widest) {
    std::uint32_t count = 0;
    for (std::uint32_t width : {12u, 8u, 4u, 2u, 1u})
        if (width <= widest) {
            count += n / width;
            n %= width;
        }
    return count;
}

// n tokens as tiles of 12, 8, 4, 2 and 1, as wide as the target has them.
std::span<const TokenTile> makeTiles(CpuStream& stream, CpuStream::Area area, std::uint32_t n, std::uint32_t widest) {
    const std::uint32_t count = tileCount(n, widest);
    TokenTile* tiles = reinterpret_cast<TokenTile*>(stream.shared(area, count * sizeof(TokenTile)));
    std::uint32_t made = 0, first = 0;
    for (std::uint32_t width : {12u, 8u, 4u, 2u, 1u})
        for (; width <= widest && n - first >= width; first += width)
            tiles[made++] = {first, width};
    return {tiles, count};
}

// The activations of one arithmetic, laid out for its kernels.
struct Activations {
    std::span<const TokenTile> tiles;
    std::byte* panels = nullptr;
};

Activations layOut(CpuStream& stream, const ProductFunctions& functions, bool fast, const float* x, std::uint32_t n,
                   std::uint32_t cols) {
    const std::size_t tokenBytes = fast ? std::size_t{cols} / kTileCols * kPanelWords * 4 : std::size_t{cols} * 4;
    Activations result;
    result.tiles = makeTiles(stream, fast ? CpuStream::FastTiles : CpuStream::ExactTiles, n, functions.widestTile);
    result.panels = stream.shared(fast ? CpuStream::FastPanels : CpuStream::ExactPanels, n * tokenBytes);
    const auto panel = [&](std::uint32_t unit, unsigned) {
        const TokenTile tile = result.tiles[unit];
        functions.panel(x, cols, tile, result.panels + tile.first * tokenBytes);
    };
    const std::uint32_t count = static_cast<std::uint32_t>(result.tiles.size());
    if (n >= kRowsWorthSharing)
        stream.run(count, panel);
    else
        for (std::uint32_t i = 0; i < count; ++i)
            panel(i, 0);
    return result;
}

// The groups of rows of several products, cut into units.
class ProductUnits {
public:
    ProductUnits(std::span<const Product> products, std::uint32_t n, unsigned threads)
        : m_products(products) {
        std::size_t groups = 0, bytes = 0;
        for (const Product& product : products) {
            groups += own(*product.weight).groups();
            bytes += product.weight->bytes;
        }
        const std::size_t average = std::max<std::size_t>(bytes / std::max<std::size_t>(groups, 1), 1);
        m_groupsPerUnit = UINT32_MAX / 2;
        if (threads > 1)
            m_groupsPerUnit = static_cast<std::uint32_t>(groups / (std::size_t{threads} * kUnitsPerThread));
        if (n > 1)
            m_groupsPerUnit = std::min(m_groupsPerUnit, static_cast<std::uint32_t>(kUnitBytes / average));
        m_groupsPerUnit = std::max((m_groupsPerUnit + 3) / 4 * 4, 4u); // exact takes four groups at a time
        for (const Product& product : products)
            m_count += unitsOf(product);
    }

    std::uint32_t count() const { return m_count; }

    // The product and the groups of a unit.
    const Product& find(std::uint32_t unit, std::uint32_t& firstGroup, std::uint32_t& lastGroup) const {
        std::size_t i = 0;
        while (unit >= unitsOf(m_products[i]))
            unit -= unitsOf(m_products[i++]);
        firstGroup = unit * m_groupsPerUnit;
        lastGroup = std::min(firstGroup + m_groupsPerUnit, own(*m_products[i].weight).groups());
        return m_products[i];
    }

private:
    std::uint32_t unitsOf(const Product& product) const {
        return (own(*product.weight).groups() - 1) / m_groupsPerUnit + 1;
    }

    std::span<const Product> m_products;
    std::uint32_t m_groupsPerUnit = 1;
    std::uint32_t m_count = 0;
};

template <Target kTarget>
std::uint64_t multiply(Stream& baseStream, std::span<const Product> products, const float* x, std::uint32_t n,
                       Arithmetic arithmetic) {
    if (products.empty() || n == 0)
        return 0;
    const SubnormalGuard guard;
    CpuStream& stream = own(baseStream);
    const ProductFunctions& fast = *fastFunctions(kTarget);
    const ProductFunctions& exact = *exactFunctions(kTarget);
    const std::uint32_t cols = products.front().weight->cols;
    std::uint64_t bytes = std::uint64_t{n} * cols * 4;
    bool anyFast = false, anyExact = false;
    for (const Product& product : products) {
        assert(product.weight->cols == cols);
        (runsFast(own(*product.weight), arithmetic) ? anyFast : anyExact) = true;
        bytes += product.weight->bytes + std::uint64_t{n} * product.weight->rows * 4;
    }
    Activations fastInput, exactInput;
    if (anyFast)
        fastInput = layOut(stream, fast, true, x, n, cols);
    if (anyExact) {
        exactInput = layOut(stream, exact, false, x, n, cols);
        stream.reservePrivate(exactScratchBytes(n));
    }
    const ProductUnits units(products, n, stream.threads());
    stream.run(units.count(), [&](std::uint32_t unit, unsigned worker) {
        ProductTask task;
        const Product& product = units.find(unit, task.firstGroup, task.lastGroup);
        task.matrix = &own(*product.weight);
        task.out = product.out;
        const bool runFast = runsFast(*task.matrix, arithmetic);
        const Activations& input = runFast ? fastInput : exactInput;
        task.tiles = input.tiles.data();
        task.tileCount = static_cast<std::uint32_t>(input.tiles.size());
        task.panels = input.panels;
        if (!runFast)
            task.scratch = stream.privateOf(worker);
        (runFast ? fast : exact).product(task);
    });
    return bytes;
}

// --- attention ------------------------------------------------------------------------------------------------------

// Rows of one sequence and heads of one KV head that are computed together.
struct AttendUnit {
    std::uint32_t firstRow, lastRow;
    std::uint32_t firstHead, heads;
    std::uint32_t kvHead;
    std::uint32_t segments; // that the last row reads
};

std::uint32_t segmentsOf(std::uint32_t position) {
    return position / kSegmentSlots + 1;
}

// Fills `units` (null: counts only): runs of rows of a sequence, for each KV head.
std::uint32_t makeAttendUnits(const AttentionBatch& batch, std::uint32_t queryHeads, std::uint32_t kvHeads,
                              AttendUnit* units) {
    const std::uint32_t group = queryHeads / kvHeads;
    const std::uint32_t headsAtOnce = std::min(group, kMaxQueries);
    const std::uint32_t rowsAtOnce = kMaxQueries / headsAtOnce;
    std::uint32_t count = 0;
    for (std::uint32_t row = 0; row < batch.rows;) {
        std::uint32_t end = row + 1;
        while (end < batch.rows && end - row < rowsAtOnce && batch.sequenceOf[end] == batch.sequenceOf[row])
            ++end;
        for (std::uint32_t kvHead = 0; kvHead < kvHeads; ++kvHead)
            for (std::uint32_t h = 0; h < group; h += headsAtOnce, ++count)
                if (units)
                    units[count] = {row,
                                    end,
                                    kvHead * group + h,
                                    std::min(headsAtOnce, group - h),
                                    kvHead,
                                    segmentsOf(batch.positionOf[end - 1])};
        row = end;
    }
    return count;
}

std::uint64_t attendBytes(const AttentionBatch& batch, std::uint32_t queryHeads, const KvLayout& layout) {
    // K and V of a sequence count once for all its rows; they are read once per run of rows, mostly from a cache.
    std::uint64_t slots = 0;
    for (std::uint32_t row = 0; row < batch.rows; ++row)
        if (row + 1 == batch.rows || batch.sequenceOf[row + 1] != batch.sequenceOf[row])
            slots += std::uint64_t{batch.positionOf[row]} + 1;
    const std::uint64_t perSlot =
        std::uint64_t{layout.kvHeads} * layout.headDim * (elementBytes(layout.kFormat) + elementBytes(layout.vFormat));
    return slots * perSlot + std::uint64_t{batch.rows} * queryHeads * layout.headDim * 8;
}

template <Target kTarget>
std::uint64_t attend(Stream& baseStream, const float* q, std::uint32_t queryHeads, float scale,
                     const AttentionBatch& batch, const KvArena& arena, std::uint32_t layer, float* out) {
    if (batch.rows == 0)
        return 0;
    const SubnormalGuard guard;
    CpuStream& stream = own(baseStream);
    const AttentionFunctions& functions = *attentionFunctions(kTarget);
    const KvLayout& layout = arena.layout;
    assert(queryHeads % layout.kvHeads == 0);
    const std::uint32_t count = makeAttendUnits(batch, queryHeads, layout.kvHeads, nullptr);
    AttendUnit* units =
        reinterpret_cast<AttendUnit*>(stream.shared(CpuStream::AttendUnits, count * sizeof(AttendUnit)));
    makeAttendUnits(batch, queryHeads, layout.kvHeads, units);
    stream.reservePrivate(attendScratchBytes(layout.headDim));

    const auto taskOf = [&](const AttendUnit& unit, unsigned worker) {
        AttendTask task;
        task.q = q;
        task.out = out;
        task.queryHeads = queryHeads;
        task.scale = scale;
        task.batch = &batch;
        task.arena = &arena;
        task.layer = layer;
        task.firstRow = unit.firstRow;
        task.lastRow = unit.lastRow;
        task.firstHead = unit.firstHead;
        task.heads = unit.heads;
        task.kvHead = unit.kvHead;
        task.firstSegment = 0;
        task.lastSegment = unit.segments;
        task.scratch = stream.privateOf(worker);
        return task;
    };

    std::uint32_t segments = 0;
    bool singleRows = true;
    for (std::uint32_t i = 0; i < count; ++i) {
        segments = std::max(segments, units[i].segments);
        singleRows = singleRows && units[i].lastRow - units[i].firstRow == 1;
    }
    const bool split = stream.threads() > 1 && singleRows && segments > 1 && count < 4 * stream.threads();
    if (!split) {
        stream.run(count, [&](std::uint32_t unit, unsigned worker) { functions.attend(taskOf(units[unit], worker)); });
        return attendBytes(batch, queryHeads, layout);
    }
    // Few long rows: a unit is one segment; then the segments of each query are combined in order.
    const std::size_t floats = partialFloats(layout.headDim);
    const std::size_t segmentStride = std::size_t{batch.rows} * queryHeads * floats;
    float* partials =
        reinterpret_cast<float*>(stream.shared(CpuStream::Partials, segments * segmentStride * sizeof(float)));
    const auto queryOf = [&](const AttendUnit& unit) {
        return std::size_t{unit.firstRow} * queryHeads + unit.firstHead;
    };
    stream.run(count * segments, [&](std::uint32_t unit, unsigned worker) {
        const AttendUnit& rows = units[unit / segments];
        const std::uint32_t segment = unit % segments;
        if (segment >= rows.segments)
            return;
        AttendTask task = taskOf(rows, worker);
        task.firstSegment = segment;
        task.lastSegment = segment + 1;
        functions.segment(task, partials + segment * segmentStride + queryOf(rows) * floats);
    });
    for (std::uint32_t i = 0; i < count; ++i)
        for (std::uint32_t h = 0; h < units[i].heads; ++h) {
            const std::size_t query = queryOf(units[i]) + h;
            functions.combine(partials + query * floats, segmentStride, units[i].segments, layout.headDim,
                              reinterpret_cast<float*>(stream.privateOf(0)), out + query * layout.headDim);
        }
    return attendBytes(batch, queryHeads, layout);
}

// --- row by row
// -------------------------------------------------------------------------------------------------------

template <class Body> void forRows(CpuStream& stream, std::uint32_t n, const Body& body) {
    if (n < kRowsWorthSharing || stream.threads() == 1) {
        for (std::uint32_t i = 0; i < n; ++i)
            body(i);
        return;
    }
    const std::uint32_t units = std::min(n, stream.threads() * kUnitsPerThread);
    stream.run(units, [&](std::uint32_t unit, unsigned) {
        const std::uint32_t last = static_cast<std::uint32_t>(std::uint64_t{n} * (unit + 1) / units);
        for (std::uint32_t i = static_cast<std::uint32_t>(std::uint64_t{n} * unit / units); i < last; ++i)
            body(i);
    });
}

template <Target kTarget>
std::uint64_t embed(Stream& stream, const PackedMatrix& table, const std::int32_t* tokens, std::uint32_t n,
                    float* out) {
    const SubnormalGuard guard;
    const CpuMatrix& matrix = own(table);
    forRows(own(stream), n, [&](std::uint32_t i) {
        assert(tokens[i] >= 0 && static_cast<std::uint32_t>(tokens[i]) < matrix.rows);
        rowFunctions(kTarget)->embed(matrix, static_cast<std::uint32_t>(tokens[i]), out + std::size_t{i} * matrix.cols);
    });
    return n * (matrix.groupBytes() / kGroupRows + std::uint64_t{matrix.cols} * 4);
}

template <Target kTarget>
std::uint64_t rmsNorm(Stream& stream, const float* x, const float* weight, float epsilon, std::uint32_t n,
                      std::uint32_t d, float* out) {
    const SubnormalGuard guard;
    forRows(own(stream), n, [&](std::uint32_t i) {
        rowFunctions(kTarget)->rmsNorm(x + std::size_t{i} * d, weight, epsilon, d, out + std::size_t{i} * d);
    });
    return std::uint64_t{n} * d * 8 + std::uint64_t{d} * 4;
}

template <Target kTarget>
std::uint64_t rope(Stream& stream, float* x, const std::uint32_t* positions, std::uint32_t n, std::uint32_t heads,
                   const RopeTable& table, RopePairs pairs) {
    const SubnormalGuard guard;
    const std::size_t half = table.headDim / 2;
    forRows(own(stream), n, [&](std::uint32_t i) {
        assert(positions[i] < table.positions);
        rowFunctions(kTarget)->rope(x + std::size_t{i} * heads * table.headDim, table.cos + positions[i] * half,
                                    table.sin + positions[i] * half, heads, table.headDim, pairs);
    });
    return std::uint64_t{n} * heads * table.headDim * 8 + std::uint64_t{n} * table.headDim * 4;
}

template <Target kTarget>
std::uint64_t storeKv(Stream& stream, const float* k, const float* v, const AttentionBatch& batch, const KvArena& arena,
                      std::uint32_t layer) {
    const SubnormalGuard guard;
    const KvLayout& layout = arena.layout;
    const std::size_t rowFloats = std::size_t{layout.kvHeads} * layout.headDim;
    forRows(own(stream), batch.rows, [&](std::uint32_t row) {
        const std::uint32_t slot = batch.positionOf[row];
        std::byte* block =
            arena.blocks + batch.blockTables[batch.sequenceOf[row]][slot / layout.blockTokens] * layout.blockBytes();
        rowFunctions(kTarget)->storeKv(k + row * rowFloats, v + row * rowFloats, layout, layer,
                                       slot % layout.blockTokens, block);
    });
    return std::uint64_t{batch.rows} * rowFloats * (8 + elementBytes(layout.kFormat) + elementBytes(layout.vFormat));
}

// Elements that one unit of an element-wise function handles: 16 KiB of each operand.
constexpr std::size_t kElementsPerUnit = 4096;

template <class Body> void forElements(CpuStream& stream, std::size_t n, const Body& body) {
    const std::size_t units = (n + kElementsPerUnit - 1) / kElementsPerUnit;
    if (stream.threads() == 1 || units < kRowsWorthSharing) {
        body(std::size_t{0}, n);
        return;
    }
    stream.run(static_cast<std::uint32_t>(units), [&](std::uint32_t unit, unsigned) {
        const std::size_t first = unit * kElementsPerUnit;
        body(first, std::min(kElementsPerUnit, n - first));
    });
}

template <Target kTarget> std::uint64_t siluMultiply(Stream& stream, float* gate, const float* up, std::size_t n) {
    const SubnormalGuard guard;
    forElements(own(stream), n, [&](std::size_t first, std::size_t count) {
        rowFunctions(kTarget)->siluMultiply(gate + first, up + first, count);
    });
    return std::uint64_t{n} * 12;
}

template <Target kTarget> std::uint64_t add(Stream& stream, float* x, const float* y, std::size_t n) {
    const SubnormalGuard guard;
    forElements(own(stream), n,
                [&](std::size_t first, std::size_t count) { rowFunctions(kTarget)->add(x + first, y + first, count); });
    return std::uint64_t{n} * 12;
}

// --- targets
// ----------------------------------------------------------------------------------------------------------

struct NamedTarget {
    Target target;
    std::string_view name;
    Kernels kernels;
};

template <Target kTarget> NamedTarget tableOf(const char* name) {
    Kernels k;
    k.name = "cpu";
    k.target = name;
    k.createStream = createStream;
    k.createMatrix = createMatrix;
    k.embed = embed<kTarget>;
    k.rmsNorm = rmsNorm<kTarget>;
    k.multiply = multiply<kTarget>;
    k.rope = rope<kTarget>;
    k.storeKv = storeKv<kTarget>;
    k.attend = attend<kTarget>;
    k.siluMultiply = siluMultiply<kTarget>;
    k.add = add<kTarget>;
    return {kTarget, name, k};
}

struct Offered {
    std::vector<NamedTarget> targets; // best first
    std::vector<std::string_view> names;
};

const Offered& offered() {
    static const Offered result = [] {
        Offered o;
#if HWY_ARCH_X86
        const std::int64_t supported = hwy::SupportedTargets();
        if (supported & HWY_AVX3) {
            if (__builtin_cpu_supports("avx512vnni"))
                o.targets.push_back(tableOf<Target::Avx512Vnni>("AVX-512 VNNI"));
            o.targets.push_back(tableOf<Target::Avx512>("AVX-512"));
        }
        if (supported & HWY_AVX2)
            o.targets.push_back(tableOf<Target::Avx2>("AVX2"));
#elif HWY_ARCH_ARM_A64
        o.targets.push_back(tableOf<Target::Neon>("NEON"));
#endif
        for (const NamedTarget& target : o.targets)
            o.names.push_back(target.name);
        return o;
    }();
    return result;
}

} // namespace

} // namespace cpu

const char* cpuRefusal() {
    if (!cpu::offered().targets.empty())
        return nullptr;
    return "This processor lacks AVX2, FMA or F16C, which the CPU backend needs; run on a machine from 2013 or later, "
           "or open a recorded session, which needs no backend.";
}

const Kernels& cpuKernels() {
    static const Kernels refused = [] {
        Kernels k;
        k.name = "cpu";
        k.target = "none";
        k.createStream = cpu::createStream;
        return k;
    }();
    const auto& targets = cpu::offered().targets;
    return targets.empty() ? refused : targets.front().kernels;
}

std::span<const std::string_view> cpuTargets() {
    return cpu::offered().names;
}

const Kernels* cpuKernelsFor(std::string_view target) {
    for (const cpu::NamedTarget& offer : cpu::offered().targets)
        if (offer.name == target)
            return &offer.kernels;
    return nullptr;
}

} // namespace kvatlas::kernels
