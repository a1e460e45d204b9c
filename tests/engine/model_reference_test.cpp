// SPDX-License-Identifier: Apache-2.0
// The default model on the reference backend against the reference values: slow, so fewer of them.
#include "kernels/reference/reference.h"
#include "tests/engine/oracle_cases.h"

namespace kvatlas::engine {
namespace {

const std::shared_ptr<const Weights>& weights() {
    static const auto loaded = testing::defaultModelOn(kernels::referenceKernels());
    return loaded;
}

TEST(modelOnReferenceTest, logitsAreTheReferences) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    testing::checkLogits(weights(), {});
}

TEST(modelOnReferenceTest, all256GreedyTokensAreTheReferences) {
    KVATLAS_REQUIRE_DEFAULT_MODEL();
    testing::checkGreedy(weights(), kernels::StorageFormat::F32, 64 / testing::kLessWorkBy);
}

} // namespace
} // namespace kvatlas::engine
