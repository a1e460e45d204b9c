// SPDX-License-Identifier: Apache-2.0
#include "core/model/model.h"
#include "tests/support/tiny_llama.h"

#include <gtest/gtest.h>

using namespace kvatlas;
using namespace kvatlas::model;
using namespace kvatlas::testing;
using kernels::WeightFormat;

namespace {

TEST(TinyLlama, opensInEveryWeightFormat) {
    for (const WeightFormat format :
         {WeightFormat::F32, WeightFormat::F16, WeightFormat::BF16, WeightFormat::Q8_0, WeightFormat::Q4_0,
          WeightFormat::Q4_1, WeightFormat::Q4_K, WeightFormat::Q5_K, WeightFormat::Q6_K}) {
        TinyLlama shape;
        shape.matrixFormat = shape.embeddingFormat = format;
        if (kernels::infoOf(format).groupElements == 256) {
            shape.embedding = shape.feedForward = 256;
            shape.headDim = 64;
        }
        const auto model = Model::fromBytes(tinyLlama(1, shape), "tiny.gguf");
        ASSERT_TRUE(model) << model.error().message;
        EXPECT_EQ((*model)->tokenEmbedding().format, format);
        EXPECT_EQ((*model)->layers()[1].down.format, format);
        EXPECT_EQ((*model)->layers()[1].down.data.size(),
                  (*model)->layers()[1].down.rowBytes() * (*model)->layers()[1].down.rows);
        EXPECT_TRUE((*model)->warnings().empty());
    }
}

TEST(TinyLlama, hasTheShapeThatWasAskedForTiedOrNot) {
    TinyLlama shape;
    shape.layers = 3;
    shape.tied = false;
    const auto opened = Model::fromBytes(tinyLlama(7, shape), "tiny.gguf");
    ASSERT_TRUE(opened) << opened.error().message;
    const Model& model = **opened;
    EXPECT_EQ(model.config().layers, 3u);
    EXPECT_EQ(model.config().kvHeads, 2u);
    EXPECT_EQ(model.config().vocabulary, kTinyVocabulary);
    EXPECT_FALSE(model.outputIsTied());
    EXPECT_NE(model.output().data.data(), model.tokenEmbedding().data.data());
    EXPECT_EQ(model.layers()[2].key.rows, 32u);
    EXPECT_EQ(model.layers()[2].key.columns, 64u);

    shape.tied = true;
    const auto tied = Model::fromBytes(tinyLlama(7, shape), "tiny.gguf");
    ASSERT_TRUE(tied) << tied.error().message;
    EXPECT_TRUE((*tied)->outputIsTied());
    EXPECT_EQ((*tied)->output().data.data(), (*tied)->tokenEmbedding().data.data());
}

TEST(TinyLlama, sameSeedGivesTheSameBytes) {
    EXPECT_EQ(tinyLlama(5), tinyLlama(5));
    EXPECT_NE(tinyLlama(5), tinyLlama(6));
}

} // namespace
