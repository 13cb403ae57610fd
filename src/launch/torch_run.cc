// SPDX-License-Identifier: Apache-2.0
#include "launch/torch_run.h"

#include <algorithm>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kOwn = "overcap-";

std::optional<TorchRun> Decode(std::string_view text) {
  TorchRun run;
  for (int* number : {&run.restarts, &run.max_restarts, &run.nodes}) {
    const size_t space = std::min(text.find(' '), text.size());
    const auto value = ParseInt(text.substr(0, space));
    if (!value || *value < 0 || *value > 1'000'000'000) return std::nullopt;
    *number = static_cast<int>(*value);
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  const size_t space = std::min(text.find(' '), text.size());
  run.id = text.substr(0, space);
  run.errors = text.substr(std::min(space + 1, text.size()));
  if (run.id.empty()) return std::nullopt;
  return run;
}

}  // namespace

std::string OwnRunId(std::string_view launch_or_job) {
  return StrCat(kOwn, launch_or_job);
}

bool IsOwnRunId(std::string_view run_id) {
  return run_id.starts_with(kOwn);
}

std::string EncodeRun(const TorchRun& run) {
  return StrCat(run.restarts, " ", run.max_restarts, " ", run.nodes, " ", run.id, " ", run.errors);
}

std::optional<TorchRun> TakeRun(Variables* variables) {
  auto run = Decode(variables->Get(kRunVariable));
  variables->Remove(kRunVariable);
  if (run && !run->errors.empty() && access(run->errors.c_str(), W_OK | X_OK) != 0) run->errors.clear();
  return run;
}

std::string ErrorFileOf(const std::string& folder, int rank) {
  return StrCat(folder, "/error-", rank, ".json");
}

}  // namespace overcap
