// SPDX-License-Identifier: Apache-2.0
// A request as a JSON value: what request.cpp and scenario.cpp share. Any thread. Errors: Refused, one sentence.
#pragma once

#include "core/base/strict_json.h"
#include "core/workload/request.h"

namespace kvatlas::workload {

enum class ArrivalIn : std::uint8_t { None, Steps, Seconds }; // how "at" is meant; None: it must not stand there

constexpr std::size_t kMaxRequestJsonBytes = std::size_t{16} << 20;

Result<Request> requestFromJson(const Json& value, std::string where, ArrivalIn arrival);
Json requestToJson(const Request& request, ArrivalIn arrival);

} // namespace kvatlas::workload
