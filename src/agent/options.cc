// SPDX-License-Identifier: Apache-2.0
#include "agent/options.h"

#include <functional>
#include <map>

#include "base/text.h"
#include "model/job_id.h"

namespace overcap {
namespace {

constexpr long long kLargestIndex = 10'000'000;
constexpr long long kMostSeconds = 100LL * 366 * 86400;  // as in a spec

using Setter = std::function<Result<void>(std::string_view)>;

Result<long long> Number(std::string_view text, long long lowest) {
  const auto value = ParseInt(text);
  if (!value || *value < lowest || *value > kLargestIndex) {
    return Fail(ErrorCode::kUsage, StrCat("'", text, "' is not a number from ", lowest, " on"));
  }
  return *value;
}

Setter TextInto(std::string* target) {
  return [target](std::string_view text) -> Result<void> {
    if (!text.starts_with('/')) return Fail(ErrorCode::kUsage, StrCat("'", text, "' is no absolute path"));
    *target = text;
    return {};
  };
}

template <typename N>
Setter NumberInto(N* target, long long lowest) {
  return [target, lowest](std::string_view text) -> Result<void> {
    OC_TRY(value, Number(text, lowest));
    *target = static_cast<N>(value);
    return {};
  };
}

Setter YesInto(bool* target) {
  return [target](std::string_view text) -> Result<void> {
    if (text != "yes" && text != "no")
      return Fail(ErrorCode::kUsage, StrCat("'", text, "' is not yes or no"));
    *target = text == "yes";
    return {};
  };
}

Setter UnderInto(std::string* target) {
  return [target](std::string_view text) -> Result<void> {
    if (text != "slurm") return Fail(ErrorCode::kUsage, StrCat("'", text, "' is not slurm"));
    *target = text;
    return {};
  };
}

Setter IdInto(std::string* target) {
  return [target](std::string_view text) -> Result<void> {
    if (!IsJobId(text)) return Fail(ErrorCode::kUsage, StrCat("'", text, "' is no job id"));
    *target = text;
    return {};
  };
}

Setter StoreInto(JobStore* target) {
  return [target](std::string_view text) -> Result<void> {
    OC_TRY(store, JobStoreFromJson(text));
    *target = std::move(store);
    return {};
  };
}

Setter BytesInto(int64_t* target) {
  return [target](std::string_view text) -> Result<void> {
    const auto bytes = ParseInt(text);
    if (!bytes || *bytes < 0) return Fail(ErrorCode::kUsage, StrCat("'", text, "' is no number of bytes"));
    *target = *bytes;
    return {};
  };
}

Setter SecondsInto(int64_t* target) {
  return [target](std::string_view text) -> Result<void> {
    const auto seconds = ParseInt(text);
    if (!seconds || *seconds < 0 || *seconds > kMostSeconds)
      return Fail(ErrorCode::kUsage, StrCat("'", text, "' is no number of seconds"));
    *target = *seconds;
    return {};
  };
}

Setter ListInto(std::vector<int>* target) {
  return [target](std::string_view text) -> Result<void> {
    OC_TRY(list, ParseIndexList(text));
    *target = std::move(list);
    return {};
  };
}

std::map<std::string, Setter, std::less<>> Setters(AgentOptions* options) {
  return {
      {"--job", TextInto(&options->job_dir)},
      {"--store", TextInto(&options->store_dir)},
      {"--attempt", NumberInto(&options->attempt, 1)},
      {"--slot", NumberInto(&options->slot, 0)},
      {"--gpus", ListInto(&options->gpus)},
      {"--cpus", ListInto(&options->cpus)},
      {"--retry-tasks", ListInto(&options->retry_tasks)},
      {"--nodes", NumberInto(&options->nodes, 1)},
      {"--grace", NumberInto(&options->grace_seconds, 0)},
      {"--time", SecondsInto(&options->time_seconds)},
      {"--memory", NumberInto(&options->memory_mb, 0)},
      {"--private-gpus", YesInto(&options->private_gpus)},
      {"--memory-bytes", BytesInto(&options->memory_bytes)},
      {"--under", UnderInto(&options->under)},
      {"--cgroups", YesInto(&options->cgroups)},
      {"--id", IdInto(&options->id)},
      {"--via", StoreInto(&options->via)},
      {"--node-folder", TextInto(&options->node_folder)},
      {"--backlog", BytesInto(&options->backlog)},
  };
}

}  // namespace

Result<std::vector<int>> ParseIndexList(std::string_view text) {
  std::vector<int> out;
  if (text.empty()) return out;
  for (const std::string& part : Split(text, ',')) {
    const size_t dash = part.find('-');
    OC_TRY(first, Number(part.substr(0, dash), 0));
    long long last = first;
    if (dash != std::string::npos) {
      OC_TRY(end, Number(part.substr(dash + 1), first));
      last = end;
    }
    for (long long i = first; i <= last; ++i) out.push_back(static_cast<int>(i));
  }
  return out;
}

Result<AgentOptions> ParseAgentOptions(const std::vector<std::string>& args) {
  AgentOptions options;
  const auto setters = Setters(&options);
  for (size_t i = 0; i < args.size(); ++i) {
    const size_t equals = args[i].find('=');
    const std::string flag = args[i].substr(0, equals);
    const auto setter = setters.find(flag);
    if (setter == setters.end())
      return Fail(ErrorCode::kUsage, StrCat("agent: unknown argument '", args[i], "'"));
    if (equals == std::string::npos && i + 1 == args.size()) {
      return Fail(ErrorCode::kUsage, StrCat("agent: '", flag, "' needs a value"));
    }
    const std::string value = equals == std::string::npos ? args[++i] : args[i].substr(equals + 1);
    const Result<void> set = setter->second(value);
    if (!set) return Fail(ErrorCode::kUsage, StrCat("agent: ", flag, ": ", set.error().message));
  }
  if (!options.via.empty()) {
    if (options.id.empty() || options.node_folder.empty())
      return Fail(ErrorCode::kUsage, "agent: '--via' needs '--id' and '--node-folder'");
    options.job_dir = StrCat(options.node_folder, "/jobs/", options.id);
    options.store_dir = options.node_folder + "/store";
  }
  if (options.job_dir.empty()) return Fail(ErrorCode::kUsage, "agent: '--job' is missing");
  if (options.store_dir.empty()) return Fail(ErrorCode::kUsage, "agent: '--store' is missing");
  return options;
}

}  // namespace overcap
