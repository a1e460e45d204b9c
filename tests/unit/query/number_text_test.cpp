// SPDX-License-Identifier: Apache-2.0
#include "core/query/number_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kvatlas::query {
namespace {

TEST(NumberText, separatesThousandsByThinSpacesOrNoBreakSpaces) {
    EXPECT_EQ(numberText(0), "0");
    EXPECT_EQ(numberText(999), "999");
    EXPECT_EQ(numberText(1000), "1\xE2\x80\x89"
                                "000");
    EXPECT_EQ(numberText(368640, Thousands::NoBreak), "368\xC2\xA0"
                                                      "640");
    EXPECT_EQ(numberText(1234567, Thousands::NoBreak), "1\xC2\xA0"
                                                       "234\xC2\xA0"
                                                       "567");
}

TEST(NumberText, writesTheMinusSign) {
    EXPECT_EQ(numberText(-1), "\xE2\x88\x92"
                              "1");
    EXPECT_EQ(numberText(std::numeric_limits<std::int64_t>::min(), Thousands::NoBreak), "\xE2\x88\x92"
                                                                                        "9\xC2\xA0"
                                                                                        "223\xC2\xA0"
                                                                                        "372\xC2\xA0"
                                                                                        "036\xC2\xA0"
                                                                                        "854\xC2\xA0"
                                                                                        "775\xC2\xA0"
                                                                                        "808");
    EXPECT_EQ(significantText(-0.5), "\xE2\x88\x92"
                                     "0.500");
}

TEST(NumberText, keepsThreeSignificantDigits) {
    EXPECT_EQ(significantText(0), "0");
    EXPECT_EQ(significantText(0.03514), "0.0351");
    EXPECT_EQ(significantText(2.1), "2.10");
    EXPECT_EQ(significantText(9.994), "9.99");
    EXPECT_EQ(significantText(9.996), "10.0");
    EXPECT_EQ(significantText(14.83), "14.8");
    EXPECT_EQ(significantText(99.96), "100");
    EXPECT_EQ(significantText(143.2), "143");
    EXPECT_EQ(significantText(999.6, Thousands::NoBreak), "1\xC2\xA0"
                                                          "000");
    EXPECT_EQ(significantText(1432.4, Thousands::NoBreak), "1\xC2\xA0"
                                                           "432");
    EXPECT_EQ(significantText(std::nan("")), "\xE2\x80\x93");
    EXPECT_EQ(significantText(std::numeric_limits<double>::infinity()), "\xE2\x80\x93");
}

TEST(NumberText, writesBytesInBinaryUnits) {
    EXPECT_EQ(bytesText(0), "0 B");
    EXPECT_EQ(bytesText(1023), "1023 B");
    EXPECT_EQ(bytesText(1024), "1.00 KiB");
    EXPECT_EQ(bytesText(368640), "360 KiB");
    EXPECT_EQ(bytesText(13002342), "12.4 MiB");
    EXPECT_EQ(bytesText(64u << 20), "64.0 MiB");
    EXPECT_EQ(bytesText((1u << 20) - 1), "1.00 MiB");
    EXPECT_EQ(bytesText(std::uint64_t{1} << 40), "1.00 TiB");
    EXPECT_EQ(bytesText(~std::uint64_t{0}, Thousands::NoBreak), "16\xC2\xA0"
                                                                "777\xC2\xA0"
                                                                "216 TiB");
    EXPECT_EQ(exactBytesText(368640, Thousands::NoBreak), "368\xC2\xA0"
                                                          "640 B = 360 KiB");
    EXPECT_EQ(exactBytesText(17), "17 B");
}

TEST(NumberText, writesPercentAndTime) {
    EXPECT_EQ(percentText(0.0213), "2.1 %");
    EXPECT_EQ(percentText(1), "100.0 %");
    EXPECT_EQ(percentText(-0.25), "\xE2\x88\x92"
                                  "25.0 %");
    EXPECT_EQ(percentText(-0.0001), "0.0 %");
    EXPECT_EQ(percentText(std::nan("")), "\xE2\x80\x93");
    EXPECT_EQ(durationText(850), "850 ns");
    EXPECT_EQ(durationText(850'000), "850 \xC2\xB5s");
    EXPECT_EQ(durationText(999'900), "1.00 ms");
    EXPECT_EQ(durationText(12'340'000), "12.3 ms");
    EXPECT_EQ(durationText(1'240'000'000), "1.24 s");
    EXPECT_EQ(durationText(-5'000'000), "\xE2\x88\x92"
                                        "5.00 ms");
}

} // namespace
} // namespace kvatlas::query
