// SPDX-License-Identifier: Apache-2.0
// The backends that the suite runs on: every target of the CPU backend that this machine offers.
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <string>

namespace kvatlas::kernels::testing {

inline std::string targetParameterName(const ::testing::TestParamInfo<std::string_view>& info) {
    std::string name;
    for (const char c : info.param)
        name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
}

// A test with the target as its parameter.
class OnTarget : public ::testing::TestWithParam<std::string_view> {
protected:
    const Kernels& kernels() const { return *cpuKernelsFor(GetParam()); }
};

#define KVATLAS_ON_EVERY_TARGET(Suite)                                                                                 \
    INSTANTIATE_TEST_SUITE_P(Targets, Suite, ::testing::ValuesIn(cpuTargets().begin(), cpuTargets().end()),            \
                             targetParameterName)

} // namespace kvatlas::kernels::testing
