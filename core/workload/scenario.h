// SPDX-License-Identifier: Apache-2.0
// The scenario: a model and the requests that arrive at it, as a JSON file describes them. Plain values, any thread.
// Errors: as request.h.
#pragma once

#include "core/workload/request.h"

#include <filesystem>

namespace kvatlas::workload {

enum class Arrival : std::uint8_t { Steps, Seconds };

struct Scenario {
    std::uint32_t version = 1;
    std::string name;
    std::string description; // for people, one or two sentences
    std::string model;       // file name or path; empty: the user's choice
    std::uint64_t seed = 0;
    Arrival arrival = Arrival::Steps; // how the requests' "at" is meant
    std::vector<Request> requests;    // in the file's order; ids 1, 2, ... go by arrival, then by this order
    std::string strategyPreset;       // a preset's id; empty when strategyJson is given or nothing is
    std::string strategyJson;         // an object for core/strategy to parse; empty when there is none
    friend bool operator==(const Scenario&, const Scenario&) = default;
};

Result<Scenario> parseScenario(std::string_view json, std::string_view what = "scenario");

Result<Scenario> loadScenario(const std::filesystem::path& file);

// Complete: every key written out. parseScenario(toJson(s)) == s.
std::string toJson(const Scenario& scenario);

} // namespace kvatlas::workload
