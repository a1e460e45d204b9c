// SPDX-License-Identifier: Apache-2.0
#include "app/backend.h"

#include "kernels/cpu/cpu.h"
#include "kernels/reference/reference.h"

namespace kvatlas::app {

Result<const kernels::Kernels*> backendNamed(std::string_view name) {
    if (name == "reference")
        return &kernels::referenceKernels();
    if (name == "cuda")
        return makeError(ErrorKind::Usage, "This version is built without CUDA: take --backend cpu.");
    if (name != "cpu" && name != "auto")
        return makeError(ErrorKind::Usage, "There is no backend \"{}\": take auto, cpu or reference.", name);
    const char* refusal = kernels::cpuRefusal();
    if (refusal == nullptr)
        return &kernels::cpuKernels();
    if (name == "auto")
        return &kernels::referenceKernels();
    return makeError(ErrorKind::Failed, "{}", refusal);
}

Result<kernels::Arithmetic> arithmeticNamed(std::string_view name) {
    const auto arithmetic = kernels::arithmeticNamed(name);
    if (!arithmetic)
        return makeError(ErrorKind::Usage, "There is no arithmetic \"{}\": take fast or exact.", name);
    if (*arithmetic == kernels::Arithmetic::Integer)
        return makeError(ErrorKind::Usage, "The arithmetic \"integer\" is not available yet: take fast or exact.");
    return *arithmetic;
}

std::string describe(const kernels::Kernels& backend) {
    const std::string_view target = backend.target == nullptr ? "" : backend.target;
    return target.empty() || target == backend.name ? std::string(backend.name)
                                                    : fmt::format("{}, {}", backend.name, target);
}

Result<std::shared_ptr<const engine::Weights>> loadWeights(const std::filesystem::path& model,
                                                           const kernels::Kernels& backend) {
    auto opened = model::Model::open(model);
    if (!opened)
        return tl::unexpected(opened.error());
    return engine::Weights::load(std::move(*opened), backend);
}

} // namespace kvatlas::app
