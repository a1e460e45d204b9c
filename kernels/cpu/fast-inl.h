// SPDX-License-Identifier: Apache-2.0
// The products of `fast`, included once for each set of dot product instructions. The includer has opened a namespace
// inside the target's that offers
//
//   kFastSums                              how many sums registers hold
//   template <int kBits> struct Dot        kBits: width of the stored codes (4, 5, 6 or 8)
//       Codes prepare(VI stored)           once per 4 columns and 16 rows
//       VI step(VI sum, Codes, VI q)       sum + the products of 4 codes of a lane with 4 int8 of q
//       VI join(VI, VI)                    two unfinished sums of different columns
//       VI finish(VI sum)                  the sums, one int32 a lane; up to 8 steps are exact
//       kSigned                            prepare() takes the offset of an 8-bit code away
//
// All sums are exact integers, so that it does not matter how a target forms them.

// Where 32 columns of a panel of kWidth tokens keep what.
struct PanelTile {
    const std::int32_t* codes; // [8][width]
    const float* scale;        // [width]
    const float* scaledSum;    // [width]
    const std::int32_t* sums;  // [2][width]
};
template <int kWidth> HWY_INLINE PanelTile panelTile(const std::byte* panel, std::size_t tile) {
    const std::int32_t* at = reinterpret_cast<const std::int32_t*>(panel) + tile * kPanelWords * kWidth;
    const float* scales = reinterpret_cast<const float*>(at + 8 * kWidth);
    return {at, scales, scales + kWidth, at + 10 * kWidth};
}

// sums [vector][token] += codes of columns 4*k4 .. 4*k4+3 times theirs; codes: the tile's, of the first vector.
template <class Format, int kWidth, int kCount>
HWY_INLINE void addFour(int k4, const std::byte* codes, const std::int32_t* q, VI (&sums)[kCount][kWidth]) {
    using D = Dot<Format::kBits>;
    const DI di;
    typename D::Codes prepared[kCount];
    HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) {
        const int line = Format::kBits == 4 ? k4 / 2 : k4;
        VI stored = hn::LoadU(di, reinterpret_cast<const std::int32_t*>(codes + 64 * line + 4 * kLanes * v));
        if constexpr (Format::kBits == 4) {
            if (k4 % 2 == 1)
                stored = hn::ShiftRight<4>(stored);
            stored = hn::And(stored, hn::Set(di, 0x0F0F0F0F));
        }
        prepared[v] = D::prepare(stored);
    }
    HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) {
        const VI codesOfToken = hn::Set(di, q[k4 * kWidth + t]);
        HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) sums[v][t] = D::step(sums[v][t], prepared[v], codesOfToken);
    }
}

// The exact integer sum of a tile, offset taken off, column scales of Q6_K put on.
template <class Format, int kWidth, int kCount>
HWY_INLINE void tileSums(const std::byte* codes, const std::byte* scales, const PanelTile& q,
                         VI (&sums)[kCount][kWidth]) {
    using D = Dot<Format::kBits>;
    constexpr int kOffset = Format::kBits == 8 && D::kSigned ? 0 : static_cast<int>(Format::kLayout.offset);
    constexpr int kParts = Format::kTwoScales ? 2 : 1;
    // Few sums would wait for themselves: they are formed in several pieces (integers, so that it does not matter).
    constexpr int kPieces = kWidth * kCount == 1 ? 4 : kWidth * kCount <= 4 ? 2 : 1;
    const DI di;
    VI part[kParts][kPieces][kCount][kWidth];
    HWY_UNROLL(2) for (int p = 0; p < kParts; ++p) {
        HWY_UNROLL(4) for (int i = 0; i < kPieces; ++i) {
            HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) {
                HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) part[p][i][v][t] = hn::Zero(di);
            }
        }
        HWY_UNROLL(8)
        for (int i = 0; i < 8 / kParts; ++i)
            addFour<Format, kWidth, kCount>(p * 4 + i, codes, q.codes, part[p][i % kPieces]);
        HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) {
            HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) {
                VI pieces = part[p][0][v][t];
                HWY_UNROLL(4) for (int i = 1; i < kPieces; ++i) pieces = D::join(pieces, part[p][i][v][t]);
                VI sum = D::finish(pieces);
                if constexpr (Format::kTwoScales)
                    sum = hn::Mul(hn::Sub(sum, hn::Set(di, q.sums[p * kWidth + t] * kOffset)),
                                  Format::columnScale(scales, v, p));
                else if constexpr (kOffset != 0)
                    sum = hn::Sub(sum, hn::Set(di, (q.sums[t] + q.sums[kWidth + t]) * kOffset));
                sums[v][t] = p == 0 ? sum : hn::Add(sums[v][t], sum);
            }
        }
    }
}

// kWidth tokens times the rows of kCount vectors, the first vector `firstVector` of the group, over all columns.
template <class Format, int kWidth, int kCount>
HWY_NOINLINE void fastRows(const CpuMatrix& matrix, std::uint32_t group, int firstVector, const std::byte* panel,
                           float* out) {
    const DF df;
    const std::byte* codes = matrix.codes(group) + 4 * kLanes * firstVector;
    const std::byte* scales = matrix.scales(group);
    VF acc[kCount][kWidth];
    HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) {
        HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) acc[v][t] = hn::Zero(df);
    }
    const std::uint32_t tiles = matrix.cols / kTileCols;
    for (std::uint32_t tile = 0; tile < tiles; ++tile) {
        const PanelTile q = panelTile<kWidth>(panel, tile);
        HWY_UNROLL(8)
        for (std::uint32_t line = 0; line < Format::kLayout.codeBytes * kCount / kVectors; line += 64)
            prefetchStream(codes + line);
        prefetchStream(scales);
        VI sums[kCount][kWidth];
        // Column scales are read with the vector's own number: only whole groups do so.
        static_assert(!Format::kTwoScales || kCount == kVectors);
        tileSums<Format, kWidth, kCount>(codes, scales, q, sums);
        HWY_UNROLL(16) for (int v = 0; v < kCount; ++v) {
            const VF d = Format::scale(scales, firstVector + v);
            VF m = hn::Zero(df);
            if constexpr (Format::kMinimum)
                m = Format::minimum(scales, firstVector + v);
            HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) {
                acc[v][t] = hn::MulAdd(hn::ConvertTo(df, sums[v][t]), hn::Mul(d, hn::Set(df, q.scale[t])), acc[v][t]);
                if constexpr (Format::kMinimum)
                    acc[v][t] = hn::MulAdd(m, hn::Set(df, q.scaledSum[t]), acc[v][t]);
            }
        }
        codes += Format::kLayout.codeBytes;
        scales += Format::kLayout.scaleBytes;
    }
    const std::uint32_t row = group * kGroupRows + static_cast<std::uint32_t>(kLanes * firstVector);
    HWY_UNROLL(16) for (int t = 0; t < kWidth; ++t) {
        HWY_UNROLL(16)
        for (int v = 0; v < kCount; ++v)
            storeRows(acc[v][t], out + std::size_t{matrix.rows} * t, row + static_cast<std::uint32_t>(kLanes * v),
                      matrix.rows);
    }
}

template <class Format, int kWidth>
HWY_INLINE void fastGroup(const CpuMatrix& matrix, std::uint32_t group, const std::byte* panel, float* out) {
    // Few tokens: all rows of the group in one pass over its bytes. More: as many rows as registers hold.
    constexpr int kCount = Format::kTwoScales || kWidth * kVectors <= kFastSums ? kVectors : 1;
    for (int v = 0; v < kVectors; v += kCount)
        fastRows<Format, kWidth, kCount>(matrix, group, v, panel, out);
}

template <class Format> void fastProduct(const ProductTask& task) {
    const CpuMatrix& matrix = *task.matrix;
    const std::size_t tokenBytes = std::size_t{matrix.cols} / kTileCols * kPanelWords * 4;
    for (std::uint32_t i = 0; i < task.tileCount; ++i) {
        const TokenTile tile = task.tiles[i];
        const std::byte* panel = task.panels + tile.first * tokenBytes;
        float* out = task.out + std::size_t{tile.first} * matrix.rows;
        for (std::uint32_t group = task.firstGroup; group < task.lastGroup; ++group) {
            switch (tile.width) {
            case 1:
                fastGroup<Format, 1>(matrix, group, panel, out);
                break;
            case 2:
                fastGroup<Format, 2>(matrix, group, panel, out);
                break;
            case 4:
                fastGroup<Format, 4>(matrix, group, panel, out);
                break;
#if HWY_TARGET == HWY_AVX3
            case 8:
                fastGroup<Format, 8>(matrix, group, panel, out);
                break;
            case 12:
                fastGroup<Format, 12>(matrix, group, panel, out);
                break;
#endif
            default:
                break;
            }
        }
    }
}

void product(const ProductTask& task) {
    switch (task.matrix->format) {
    case WeightFormat::Q4_0:
        return fastProduct<Q4_0>(task);
    case WeightFormat::Q4_1:
        return fastProduct<Q4_1>(task);
    case WeightFormat::Q4_K:
        return fastProduct<Q4_K>(task);
    case WeightFormat::Q5_K:
        return fastProduct<Q5_K>(task);
    case WeightFormat::Q6_K:
        return fastProduct<Q6_K>(task);
    case WeightFormat::Q8_0:
        return fastProduct<Q8_0>(task);
    default:
        return; // formats without codes: `exact` serves both
    }
}

double registersOnly(std::uint32_t rounds) {
    constexpr int kChains = 12;
    const DI di;
    const typename Dot<4>::Codes codes = Dot<4>::prepare(hn::Set(di, 0x01000100));
    VI sums[kChains];
    for (int i = 0; i < kChains; ++i)
        sums[i] = hn::Set(di, i);
    for (std::uint32_t round = 0; round < rounds; ++round) {
        HWY_UNROLL(16) for (int i = 0; i < kChains; ++i) sums[i] = Dot<4>::step(sums[i], codes, sums[i]);
    }
    VI total = sums[0];
    for (int i = 1; i < kChains; ++i)
        total = hn::Xor(total, sums[i]);
    // Always true; the compiler cannot know.
    return hn::GetLane(total) != 0x7FFFFFFF ? 2.0 * 4 * kLanes * kChains * rounds : 0.0;
}
