// SPDX-License-Identifier: Apache-2.0
#include "sessions/names.h"

namespace kvatlas::sessions {

using namespace trace;

std::string_view nameOf(FinishReason reason) {
    switch (reason) {
    case FinishReason::EndToken:
        return "end token";
    case FinishReason::StopText:
        return "stop text";
    case FinishReason::MaxTokens:
        return "max tokens";
    case FinishReason::Context:
        return "context";
    case FinishReason::Cancelled:
        return "cancelled";
    case FinishReason::Refused:
        return "refused";
    }
    return "unknown";
}

std::string_view nameOf(PreemptionReason reason) {
    switch (reason) {
    case PreemptionReason::BlocksExhausted:
        return "blocks exhausted";
    case PreemptionReason::Command:
        return "command";
    }
    return "unknown";
}

std::string_view nameOf(ReleaseReason reason) {
    switch (reason) {
    case ReleaseReason::Finished:
        return "finished";
    case ReleaseReason::Preempted:
        return "preempted";
    }
    return "unknown";
}

std::string_view nameOf(KernelKind kernel) {
    switch (kernel) {
    case KernelKind::Embed:
        return "embed";
    case KernelKind::RmsNorm:
        return "rms norm";
    case KernelKind::Multiply:
        return "multiply";
    case KernelKind::Rope:
        return "rope";
    case KernelKind::StoreKv:
        return "store kv";
    case KernelKind::Attend:
        return "attend";
    case KernelKind::SiluMultiply:
        return "silu multiply";
    case KernelKind::Add:
        return "add";
    case KernelKind::Head:
        return "head";
    case KernelKind::Sample:
        return "sample";
    }
    return "unknown";
}

std::string_view nameOf(Tier tier) {
    switch (tier) {
    case Tier::Device:
        return "device";
    case Tier::Host:
        return "host";
    case Tier::Disk:
        return "disk";
    }
    return "unknown";
}

std::optional<FinishReason> finishReasonNamed(std::string_view name) {
    for (const auto reason : {FinishReason::EndToken, FinishReason::StopText, FinishReason::MaxTokens,
                              FinishReason::Context, FinishReason::Cancelled, FinishReason::Refused})
        if (nameOf(reason) == name)
            return reason;
    return std::nullopt;
}

} // namespace kvatlas::sessions
