// SPDX-License-Identifier: Apache-2.0
// Measures the CPU kernels on the shapes of SmolLM2-135M: each figure stands beside the machine's raw read of the same
// number of bytes, taken in the same process in turn with it. Prints one JSON object.
//
// With one thread the processor's time is counted, not the clock's, so that a busy machine disturbs less.
//
//   kernels_bench [--threads N] [--rounds N] [--target NAME] [--only products|attention|formats|rows]
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/raw_read.h"
#include "kernels/cpu/targets.h"
#include "tests/kernels/cases.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>

namespace kvatlas::kernels::bench {
namespace {

using Json = nlohmann::ordered_json;

bool g_countProcessorTime = true; // set once, before anything is measured

double now() {
    timespec time{};
    clock_gettime(g_countProcessorTime ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double seconds(const std::function<void()>& body) {
    const double start = now();
    body();
    return now() - start;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

// The products of one token of SmolLM2-135M: 30 layers of Q4_1 and a head, all different memory.
class ModelProducts {
public:
    ModelProducts(const Kernels& kernels, WeightFormat layers, WeightFormat head)
        : m_kernels(kernels) {
        for (int i = 0; i < 30; ++i) {
            add({{576, 576}, {192, 576}, {192, 576}}, layers);
            add({{576, 576}}, layers);
            add({{1536, 576}, {1536, 576}}, layers);
            add({{576, 1536}}, layers);
        }
        m_layerCalls = m_calls.size();
        add({{49152, 576}}, head);
    }
    std::size_t layerBytes() const { return bytesOf(0, m_layerCalls); }
    std::size_t headBytes() const { return bytesOf(m_layerCalls, m_calls.size()); }

    // MACs per token.
    double layerOperations() const { return 2.0 * 30 * (576.0 * 576 * 2 + 192.0 * 576 * 2 + 1536.0 * 576 * 3); }

    void layers(Stream& stream, std::uint32_t n, Arithmetic arithmetic) { run(stream, n, arithmetic, 0, m_layerCalls); }
    void head(Stream& stream, std::uint32_t n, Arithmetic arithmetic) {
        run(stream, n, arithmetic, m_layerCalls, m_calls.size());
    }

private:
    struct Call {
        std::uint32_t cols = 0;
        std::vector<const PackedMatrix*> weights;
    };

    void add(const std::vector<std::pair<std::uint32_t, std::uint32_t>>& shapes, WeightFormat format) {
        Call call;
        for (const auto& [rows, cols] : shapes) {
            const auto bytes = testing::weightBytes(format, rows, cols, m_matrices.size());
            m_matrices.push_back(m_kernels.createMatrix(format, rows, cols, bytes.data()));
            call.cols = cols;
            call.weights.push_back(m_matrices.back().get());
        }
        m_calls.push_back(std::move(call));
    }
    std::size_t bytesOf(std::size_t first, std::size_t last) const {
        std::size_t bytes = 0;
        for (std::size_t i = first; i < last; ++i)
            for (const PackedMatrix* weight : m_calls[i].weights)
                bytes += weight->bytes;
        return bytes;
    }
    void run(Stream& stream, std::uint32_t n, Arithmetic arithmetic, std::size_t first, std::size_t last) {
        if (m_x.size() < std::size_t{n} * 1536)
            m_x = testing::normals(std::size_t{n} * 1536, 1);
        for (std::size_t i = first; i < last; ++i) {
            std::vector<Product> products;
            std::size_t at = 0;
            for (const PackedMatrix* weight : m_calls[i].weights)
                at += std::size_t{n} * weight->rows;
            if (m_out.size() < at)
                m_out.resize(at);
            at = 0;
            for (const PackedMatrix* weight : m_calls[i].weights) {
                products.push_back({weight, m_out.data() + at});
                at += std::size_t{n} * weight->rows;
            }
            m_kernels.multiply(stream, products, m_x.data(), n, arithmetic);
        }
    }

    const Kernels& m_kernels;
    std::vector<std::unique_ptr<PackedMatrix>> m_matrices;
    std::vector<Call> m_calls;
    std::size_t m_layerCalls = 0;
    std::vector<float> m_x, m_out;
};

// Bodies and a raw read of the same bytes, in turn, `rounds` times; medians.
struct Sample {
    double seconds = 0, best = 0, rawSeconds = 0;
};
Sample measure(const std::function<void()>& body, RawReader* raw, int rounds) {
    body();
    std::vector<double> times, rawTimes;
    for (int i = 0; i < rounds; ++i) {
        times.push_back(seconds(body));
        if (raw)
            rawTimes.push_back(raw->pass());
    }
    return {median(times), *std::min_element(times.begin(), times.end()), raw ? median(rawTimes) : 0};
}

double round3(double value) {
    return std::round(value * 1000) / 1000;
}

Json bandwidth(const Sample& sample, std::size_t bytes, const RawReader& raw) {
    const double own = static_cast<double>(bytes) / sample.seconds;
    const double roof = static_cast<double>(raw.bytes()) / sample.rawSeconds;
    return {{"bytes", bytes},
            {"ms", round3(sample.seconds * 1e3)},
            {"gb_per_s", round3(own / 1e9)},
            {"raw_read_gb_per_s", round3(roof / 1e9)},
            {"of_raw_read", round3(own / roof)}};
}

cpu::Target targetOf(const Kernels& kernels) {
    const std::string_view name = kernels.target;
    return name == "AVX2"      ? cpu::Target::Avx2
           : name == "AVX-512" ? cpu::Target::Avx512
           : name == "NEON"    ? cpu::Target::Neon
                               : cpu::Target::Avx512Vnni;
}

// Of one thread, operands in registers.
double peakOperations(const Kernels& kernels, Arithmetic arithmetic, int rounds) {
    const cpu::ProductFunctions& functions = arithmetic == Arithmetic::Exact ? *cpu::exactFunctions(targetOf(kernels))
                                                                             : *cpu::fastFunctions(targetOf(kernels));
    double operations = 0;
    const Sample sample = measure([&] { operations = functions.registersOnly(1000000); }, nullptr, rounds);
    return operations / sample.seconds;
}

Json products(const Kernels& kernels, unsigned threads, int rounds) {
    ModelProducts model(kernels, WeightFormat::Q4_1, WeightFormat::Q8_0);
    const auto stream = kernels.createStream(threads);
    Json out;
    for (const Arithmetic arithmetic : {Arithmetic::Fast, Arithmetic::Exact}) {
        Json& part = out[std::string(nameOf(arithmetic))];
        const double peak = peakOperations(kernels, arithmetic, rounds) * threads;
        part["peak_giga_operations_per_s"] = round3(peak / 1e9);
        RawReader layerRaw(model.layerBytes(), threads), headRaw(model.headBytes(), threads);
        const Sample layers = measure([&] { model.layers(*stream, 1, arithmetic); }, &layerRaw, rounds);
        const Sample head = measure([&] { model.head(*stream, 1, arithmetic); }, &headRaw, rounds);
        part["gemv_q4_1_layers"] = bandwidth(layers, model.layerBytes(), layerRaw);
        part["gemv_q8_0_head"] = bandwidth(head, model.headBytes(), headRaw);
        part["decode_products_tokens_per_s"] = round3(1 / (layers.seconds + head.seconds));
        for (const std::uint32_t n : {2u, 4u, 8u, 16u, 64u, 512u}) {
            const int fewer = n >= 64 ? std::min(rounds, 7) : rounds;
            const Sample batch = measure([&] { model.layers(*stream, n, arithmetic); }, nullptr, fewer);
            part["layers_n" + std::to_string(n)] = {
                {"ms", round3(batch.seconds * 1e3)},
                {"tokens_per_s", round3(n / batch.seconds)},
                {"giga_operations_per_s", round3(model.layerOperations() * n / batch.seconds / 1e9)},
                {"of_peak", round3(model.layerOperations() * n / batch.seconds / peak)},
                {"times_n1", round3(n * layers.seconds / batch.seconds)}};
        }
    }
    return out;
}

Json formats(const Kernels& kernels, unsigned threads, int rounds) {
    Json out;
    const auto stream = kernels.createStream(threads);
    const std::uint32_t rows = 16384, cols = 1536;
    for (const WeightFormat format : testing::kFormats) {
        const auto bytes = testing::weightBytes(format, rows, cols, 1);
        const auto matrix = kernels.createMatrix(format, rows, cols, bytes.data());
        const auto x = testing::normals(std::size_t{8} * cols, 2);
        std::vector<float> result(std::size_t{8} * rows);
        const Product product{matrix.get(), result.data()};
        RawReader raw(matrix->bytes, threads);
        for (const Arithmetic arithmetic : {Arithmetic::Fast, Arithmetic::Exact}) {
            const auto call = [&](std::uint32_t n) {
                kernels.multiply(*stream, {&product, 1}, x.data(), n, arithmetic);
            };
            Json& part = out[std::string(infoOf(format).name)][std::string(nameOf(arithmetic))];
            const Sample one = measure([&] { call(1); }, &raw, rounds);
            const Sample eight = measure([&] { call(8); }, nullptr, rounds);
            part = bandwidth(one, matrix->bytes, raw);
            part["n8_times_n1"] = round3(8 * one.seconds / eight.seconds);
        }
    }
    return out;
}

Json attention(const Kernels& kernels, unsigned threads, int rounds) {
    Json out;
    const auto stream = kernels.createStream(threads);
    KvLayout layout;
    layout.layers = 30;
    layout.kvHeads = 3;
    layout.headDim = 64;
    for (const std::uint32_t blockTokens : {1u, 16u, 64u})
        for (const std::uint32_t context : {512u, 4096u}) {
            layout.blockTokens = blockTokens;
            testing::PagedCase paged(layout, {context}, 1);
            const cpu::AlignedBuffer memory(paged.arena.size());
            std::memset(memory.data(), 0x2C, memory.size()); // 0x2C2C = 0.0652
            const KvArena arena{memory.data(), layout};
            testing::BatchCase rows;
            rows.append(0, context - 1, context);
            const auto q = testing::normals(576, 1);
            std::vector<float> result(576);
            const std::size_t bytes = std::size_t{context} * layout.bytesPerToken();
            RawReader raw(bytes, threads);
            const Sample sample = measure(
                [&] {
                    for (std::uint32_t layer = 0; layer < layout.layers; ++layer)
                        kernels.attend(*stream, q.data(), 9, 0.125f, rows.view(paged), arena, layer, result.data());
                },
                &raw, rounds);
            out[fmt::format("decode_f16_ctx{}_block{}", context, blockTokens)] = bandwidth(sample, bytes, raw);
        }
    layout.blockTokens = 16;
    testing::PagedCase paged(layout, {512}, 1);
    for (std::byte& b : paged.arena)
        b = std::byte{0x2C};
    testing::BatchCase rows;
    rows.append(0, 0, 512);
    const auto q = testing::normals(512 * 576, 1);
    std::vector<float> result(512 * 576);
    const Sample sample = measure(
        [&] {
            for (std::uint32_t layer = 0; layer < layout.layers; ++layer)
                kernels.attend(*stream, q.data(), 9, 0.125f, rows.view(paged), paged.view(), layer, result.data());
        },
        nullptr, std::min(rounds, 7));
    const double operations = 30.0 * 9 * 64 * 4 * 512 * 513 / 2;
    out["prefill_512"] = {{"ms", round3(sample.seconds * 1e3)},
                          {"giga_operations_per_s", round3(operations / sample.seconds / 1e9)}};
    return out;
}

Json rowFunctions(const Kernels& kernels, unsigned threads, int rounds) {
    Json out;
    const auto stream = kernels.createStream(threads);
    for (const std::uint32_t n : {1u, 512u}) {
        auto x = testing::normals(std::size_t{n} * 1536, 1);
        const auto y = testing::normals(std::size_t{n} * 1536, 2);
        std::vector<float> result(std::size_t{n} * 1536);
        const std::string suffix = "_n" + std::to_string(n) + "_us";
        const auto time = [&](const std::function<void()>& body) {
            const int repeats = n == 1 ? 200 : 2;
            return round3(measure(
                              [&] {
                                  for (int i = 0; i < repeats; ++i)
                                      body();
                              },
                              nullptr, rounds)
                              .seconds /
                          repeats * 1e6);
        };
        out["rms_norm_576" + suffix] =
            time([&] { kernels.rmsNorm(*stream, x.data(), y.data(), 1e-5f, n, 576, result.data()); });
        out["silu_multiply_1536" + suffix] =
            time([&] { kernels.siluMultiply(*stream, result.data(), y.data(), std::size_t{n} * 1536); });
        out["add_576" + suffix] = time([&] { kernels.add(*stream, result.data(), y.data(), std::size_t{n} * 576); });
    }
    return out;
}

int run(int argc, char** argv) {
    unsigned threads = 1;
    int rounds = 15;
    std::string only;
    const Kernels* kernels = &cpuKernels();
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string flag = argv[i];
        if (flag == "--threads")
            threads = static_cast<unsigned>(std::atoi(argv[i + 1]));
        else if (flag == "--rounds")
            rounds = std::max(std::atoi(argv[i + 1]), 3);
        else if (flag == "--target")
            kernels = cpuKernelsFor(argv[i + 1]);
        else if (flag == "--only")
            only = argv[i + 1];
    }
    if (cpuRefusal() || !kernels || threads < 1) {
        fmt::print(stderr, "{}\n", cpuRefusal() ? cpuRefusal() : "unknown target, or no threads");
        return 2;
    }
    Json out;
    out["target"] = kernels->target;
    out["threads"] = threads;
    out["rounds"] = rounds;
    g_countProcessorTime = threads == 1;
    using Part = Json (*)(const Kernels&, unsigned, int);
    for (const auto& [name, part] : {std::pair<const char*, Part>{"products", products},
                                     {"attention", attention},
                                     {"formats", formats},
                                     {"rows", rowFunctions}})
        if (only.empty() || only == name)
            out[name] = part(*kernels, threads, rounds);
    fmt::print("{}\n", out.dump(1));
    return 0;
}

} // namespace
} // namespace kvatlas::kernels::bench

int main(int argc, char** argv) {
    return kvatlas::kernels::bench::run(argc, argv);
}
