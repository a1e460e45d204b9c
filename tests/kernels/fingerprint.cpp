// SPDX-License-Identifier: Apache-2.0
// Prints a hash of what every CPU kernel computes on small seeded inputs, one line each. Two builds, targets or
// machines that keep the promise of kernels.h print the same lines; scripts/arm-fingerprint compares them with Arm.
//
//   kernels_fingerprint [TARGET]          prints; default: the best target of this machine
//   kernels_fingerprint --expect FILE     compares every target of this machine with a file of such lines
#include "kernels/cpu/cpu.h"
#include "kernels/rope_table.h"
#include "tests/kernels/cases.h"

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

namespace kvatlas::kernels::testing {
namespace {

// FNV-1a, 64 bits.
class Hash {
public:
    void add(const void* data, std::size_t bytes) {
        const unsigned char* at = static_cast<const unsigned char*>(data);
        for (std::size_t i = 0; i < bytes; ++i)
            m_value = (m_value ^ at[i]) * 0x100000001B3ull;
    }
    void add(const std::vector<float>& values) { add(values.data(), values.size() * sizeof(float)); }
    std::string line(std::string_view what, std::string_view detail = "-") const {
        char digits[17];
        std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(m_value));
        return std::string(what) + ' ' + std::string(detail) + ' ' + digits + '\n';
    }

private:
    std::uint64_t m_value = 0xCBF29CE484222325ull;
};

void products(const Kernels& kernels, Stream& stream, std::string& lines) {
    for (const WeightFormat format : kFormats)
        for (const Arithmetic arithmetic : {Arithmetic::Exact, Arithmetic::Fast}) {
            Hash hash;
            const std::uint32_t rows = 45, cols = 768;
            const auto bytes = weightBytes(format, rows, cols, 11);
            const auto matrix = kernels.createMatrix(format, rows, cols, bytes.data());
            for (const std::uint32_t n : {1u, 2u, 7u, 29u}) {
                const auto x = normals(std::size_t{n} * cols, n);
                std::vector<float> out(std::size_t{n} * rows);
                const Product product{matrix.get(), out.data()};
                kernels.multiply(stream, {&product, 1}, x.data(), n, arithmetic);
                hash.add(out);
            }
            const std::vector<std::int32_t> tokens = {0, 44, 17};
            std::vector<float> embedded(tokens.size() * cols);
            kernels.embed(stream, *matrix, tokens.data(), 3, embedded.data());
            hash.add(embedded);
            lines += hash.line(nameOf(arithmetic), infoOf(format).name);
        }
}

void attention(const Kernels& kernels, Stream& stream, std::string& lines) {
    for (const StorageFormat format : {StorageFormat::F16, StorageFormat::F32})
        for (const std::uint32_t blockTokens : {1u, 4u, 16u, 48u}) {
            Hash hash;
            KvLayout layout;
            layout.layers = 1;
            layout.kvHeads = 3;
            layout.headDim = 40;
            layout.blockTokens = blockTokens;
            layout.kFormat = layout.vFormat = format;
            const std::vector<std::uint32_t> lengths = {5, 258, 530};
            PagedCase paged(layout, lengths, 3);
            for (std::uint32_t s = 0; s < lengths.size(); ++s) {
                BatchCase rows;
                rows.append(s, 0, lengths[s]);
                const auto k = normals(std::size_t{lengths[s]} * 120, 20 + s);
                const auto v = normals(std::size_t{lengths[s]} * 120, 30 + s);
                kernels.storeKv(stream, k.data(), v.data(), rows.view(paged), paged.view(), 0);
            }
            BatchCase rows;
            for (std::uint32_t s = 0; s < lengths.size(); ++s)
                rows.append(s, lengths[s] - 5, lengths[s]);
            const auto q = normals(15 * 9 * 40, 40, 2.0f);
            std::vector<float> out(q.size());
            kernels.attend(stream, q.data(), 9, 0.158f, rows.view(paged), paged.view(), 0, out.data());
            hash.add(out);
            lines += hash.line("attend", nameOf(format));
        }
}

void rowFunctions(const Kernels& kernels, Stream& stream, std::string& lines) {
    Hash norm, gate, rotation, table;
    for (const std::uint32_t d : {30u, 576u}) {
        auto x = normals(std::size_t{9} * d, 50);
        kernels.rmsNorm(stream, x.data(), normals(d, 51).data(), 1e-5f, 9, d, x.data());
        norm.add(x);
    }
    auto g = normals(5001, 52, 15.0f);
    kernels.siluMultiply(stream, g.data(), normals(5001, 53).data(), g.size());
    gate.add(g);
    for (const RopePairs pairs : {RopePairs::Interleaved, RopePairs::Halves}) {
        const OwnedRopeTable rope(300, 40, 10000.0);
        const std::vector<std::uint32_t> positions = {0, 1, 299, 128};
        auto x = normals(4 * 3 * 40, 54);
        kernels.rope(stream, x.data(), positions.data(), 4, 3, rope.view(), pairs);
        rotation.add(x);
        table.add(rope.view().cos, 300 * 20 * sizeof(float));
        table.add(rope.view().sin, 300 * 20 * sizeof(float));
    }
    lines += norm.line("rms-norm");
    lines += gate.line("silu-multiply");
    lines += rotation.line("rope");
    lines += table.line("rope-table");
}

std::string fingerprint(const Kernels& kernels) {
    const auto stream = kernels.createStream(2);
    std::string lines;
    products(kernels, *stream, lines);
    attention(kernels, *stream, lines);
    rowFunctions(kernels, *stream, lines);
    return lines;
}

int expect(const char* path) {
    std::ifstream file(path);
    const std::string expected{std::istreambuf_iterator<char>(file), {}};
    int status = 0;
    for (const std::string_view target : cpuTargets()) {
        const std::string actual = fingerprint(*cpuKernelsFor(target));
        if (actual != expected) {
            std::fprintf(stderr, "%s computes other bits than %s says:\n%s", std::string(target).c_str(), path,
                         actual.c_str());
            status = 1;
        }
    }
    return status;
}

int run(int argc, char** argv) {
    if (cpuRefusal()) {
        std::fprintf(stderr, "%s\n", cpuRefusal());
        return 1;
    }
    if (argc == 3 && std::string_view(argv[1]) == "--expect")
        return expect(argv[2]);
    const Kernels* kernels = argc > 1 ? cpuKernelsFor(argv[1]) : &cpuKernels();
    if (!kernels) {
        std::fprintf(stderr, "no target %s on this machine\n", argv[1]);
        return 2;
    }
    std::fputs(fingerprint(*kernels).c_str(), stdout);
    return 0;
}

} // namespace
} // namespace kvatlas::kernels::testing

int main(int argc, char** argv) {
    return kvatlas::kernels::testing::run(argc, argv);
}
