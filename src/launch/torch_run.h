// SPDX-License-Identifier: Apache-2.0
// What all ranks of an attempt have in common, as torchrun tells its ranks.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sys/variables.h"

namespace overcap {

// Carries a TorchRun to other hosts within the environment; taken out before the user's command runs.
constexpr char kRunVariable[] = "OVERCAP_RUN";

struct TorchRun {
  std::string id = {};      // TORCHELASTIC_RUN_ID
  std::string errors = {};  // folder for error-R.json of rank R; "": there is none
  int restarts = 0, max_restarts = 0;
  int nodes = 0;  // 0: what a rank's place says
  std::string role = "default";
  std::string signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT";
  bool operator==(const TorchRun&) const = default;
};

// The id of a launch or job that has no id for its ranks. By its beginning a world of one is known that is
// ours: a launcher within it says more about the rank (launch/rank_variables, python/overcap/place).
std::string OwnRunId(std::string_view launch_or_job);
bool IsOwnRunId(std::string_view run_id);

std::string EncodeRun(const TorchRun& run);  // without role and signals; one line
// Takes kRunVariable out. nullopt when it is not there or makes no sense. A folder for errors that this host
// does not see is dropped: torch's `record` fails on one.
std::optional<TorchRun> TakeRun(Variables* variables);

// The file in which torch's `record` leaves the error of a rank.
std::string ErrorFileOf(const std::string& folder, int rank);

}  // namespace overcap
