// SPDX-License-Identifier: Apache-2.0
// FORMAT.md and the code say the same: every event kind has its row, every frozen name stays what it is.
#include "sessions/event_json.h"
#include "sessions/names.h"
#include "sessions/schema.h"

#include <fmt/format.h>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

namespace kvatlas::sessions {
namespace {

std::string formatPage() {
    std::ifstream in(KVATLAS_SOURCE_DIR "/sessions/FORMAT.md");
    return {std::istreambuf_iterator<char>(in), {}};
}

template <class Body> std::string expectedRow(int id, const char* name, const char* eventClass) {
    std::string fields;
    const auto json = fieldsOf(trace::Event{0, 0, Body{}});
    for (const auto& [field, value] : json.items())
        fields += (fields.empty() ? "" : ", ") + field;
    return fmt::format("| {} | {} | {} | {} |", id, name, eventClass, fields);
}

TEST(Format, everyEventKindHasItsRow) {
    const std::string page = formatPage();
    int kinds = 0;
#define KVATLAS_EVENT(id, Type, name, class)                                                                           \
    EXPECT_NE(page.find(expectedRow<trace::Type>(id, name, #class)), std::string::npos)                                \
        << expectedRow<trace::Type>(id, name, #class);                                                                 \
    ++kinds;
#include "core/trace/event_kinds.def"
#undef KVATLAS_EVENT
    const std::string table = page.substr(page.find("## Event kinds"));
    int rows = 0;
    for (std::size_t at = 0; (at = table.find("| State |", at)) != std::string::npos; ++at)
        ++rows;
    for (std::size_t at = 0; (at = table.find("| Sample |", at)) != std::string::npos; ++at)
        ++rows;
    EXPECT_EQ(rows, kinds) << "a row without a kind";
}

TEST(Format, everyTableAndViewIsNamed) {
    const std::string page = formatPage();
    for (const SchemaObject& object : schemaObjects())
        EXPECT_NE(page.find(object.name), std::string::npos) << object.name;
}

TEST(Format, frozenNamesAndIdsStayWhatTheyAre) {
    using namespace trace;
    const std::string page = formatPage();
    const auto row = [](const char* what, auto... values) {
        std::string text;
        ((text += fmt::format("{}{} {}", text.empty() ? "" : ", ", static_cast<int>(values), nameOf(values))), ...);
        return fmt::format("| {} | {} |", what, text);
    };
    const std::string rows[] = {
        row("finish reason", FinishReason::EndToken, FinishReason::StopText, FinishReason::MaxTokens,
            FinishReason::Context, FinishReason::Cancelled, FinishReason::Refused),
        row("preemption reason", PreemptionReason::BlocksExhausted, PreemptionReason::Command),
        row("release reason", ReleaseReason::Finished, ReleaseReason::Preempted),
        row("kernel", KernelKind::Embed, KernelKind::RmsNorm, KernelKind::Multiply, KernelKind::Rope,
            KernelKind::StoreKv, KernelKind::Attend, KernelKind::SiluMultiply, KernelKind::Add, KernelKind::Head,
            KernelKind::Sample),
        row("tier", Tier::Device, Tier::Host, Tier::Disk),
    };
    for (const std::string& expected : rows)
        EXPECT_NE(page.find(expected), std::string::npos) << expected;
    for (const auto reason : {FinishReason::EndToken, FinishReason::StopText, FinishReason::MaxTokens,
                              FinishReason::Context, FinishReason::Cancelled, FinishReason::Refused})
        EXPECT_EQ(finishReasonNamed(nameOf(reason)), reason);
    EXPECT_FALSE(finishReasonNamed("unknown"));
    EXPECT_EQ(kApplicationId, 0x4B564154u);
    EXPECT_EQ(kSchemaVersion, 1u);
}

} // namespace
} // namespace kvatlas::sessions
