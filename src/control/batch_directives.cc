// SPDX-License-Identifier: Apache-2.0
#include "control/batch_directives.h"

#include <algorithm>
#include <cctype>
#include <limits>

namespace overcap {
namespace {

constexpr int kMost = 1'000'000;
constexpr int64_t kUsualWarning = 60;  // of --signal without a time

std::optional<int> Count(std::string_view text, int min = 1) {
  const auto number = ParseInt(text);
  if (!number || *number < min || *number > kMost) return std::nullopt;
  return static_cast<int>(*number);
}

// "30" is minutes; "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS". 0: none of them, or without a limit.
int64_t Seconds(std::string_view text) {
  int64_t days = 0;
  const size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    days = Count(text.substr(0, dash), 0).value_or(-1);
    text.remove_prefix(dash + 1);
  }
  std::vector<int64_t> parts;
  for (const std::string& part : Split(text, ':')) parts.push_back(Count(part, 0).value_or(-1));
  if (days < 0 || parts.size() > 3 || std::ranges::find(parts, -1) != parts.end()) return 0;
  if (dash != std::string_view::npos || parts.size() == 3) {
    parts.resize(3);
    return ((days * 24 + parts[0]) * 60 + parts[1]) * 60 + parts[2];
  }
  return parts[0] * 60 + (parts.size() == 2 ? parts[1] : 0);
}

// "4G"; a number without a unit is MiB. 0: no size, or all of a node's memory.
int64_t Bytes(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  int shift = 20;
  if (!text.empty() && (text.back() == 'B' || text.back() == 'b')) text.remove_suffix(1);
  const size_t unit =
      text.empty() ? std::string_view::npos
                   : kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(text.back()))));
  if (unit != std::string_view::npos) {
    shift = 10 * (static_cast<int>(unit) + 1);
    text.remove_suffix(1);
  }
  const auto number = ParseInt(text);
  if (!number || *number < 0 || *number > (std::numeric_limits<int64_t>::max() >> shift)) return 0;
  return *number << shift;
}

// GPUs as options of sbatch name them: "2", "a40:2", "a40".
struct GpuAmount {
  std::string type;
  int count = 1;
};
std::optional<GpuAmount> Gpus(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view last = colon == std::string_view::npos ? text : text.substr(colon + 1);
  const std::string_view type = colon == std::string_view::npos ? "" : text.substr(0, colon);
  if (type.find_first_of(":,") != std::string_view::npos || last.find(',') != std::string_view::npos)
    return std::nullopt;
  if (const auto count = Count(last, 0)) return GpuAmount{std::string(type), *count};
  if (!type.empty() || last.empty()) return std::nullopt;
  return GpuAmount{std::string(last), 1};
}

}  // namespace

const BatchDirectives::Row BatchDirectives::kRows[] = {
    {"account", &BatchDirectives::TakePlace},
    {"array", &BatchDirectives::TakeArray},
    {"chdir", &BatchDirectives::TakeFolder},
    {"clusters", &BatchDirectives::NoteOwn},
    {"comment", &BatchDirectives::NoteOwn},
    {"cpus-per-task", &BatchDirectives::TakeCount},
    {"dependency", &BatchDirectives::TakeDependency},
    {"error", &BatchDirectives::NoteOutput},
    {"export", &BatchDirectives::TakeExport},
    {"export-file", &BatchDirectives::NoteOwn},
    {"get-user-env", &BatchDirectives::NoteOwn},
    {"gid", &BatchDirectives::Refuse},
    {"gpus", &BatchDirectives::TakeGpus},
    {"gpus-per-node", &BatchDirectives::TakeGpus},
    {"gpus-per-task", &BatchDirectives::TakeGpus},
    {"gres", &BatchDirectives::TakeGres},
    {"help", &BatchDirectives::Refuse},
    {"hold", &BatchDirectives::TakeSwitch},
    {"ignore-pbs", &BatchDirectives::TakeNothing},
    {"input", &BatchDirectives::NoteOwn},
    {"job-name", &BatchDirectives::TakeName},
    {"kill-on-invalid-dep", &BatchDirectives::NoteOwn},
    {"mem", &BatchDirectives::TakeMemory},
    {"no-requeue", &BatchDirectives::TakeSwitch},
    {"nodelist", &BatchDirectives::TakePlace},
    {"nodes", &BatchDirectives::TakeNodes},
    {"ntasks", &BatchDirectives::TakeCount},
    {"ntasks-per-node", &BatchDirectives::TakeCount},
    {"open-mode", &BatchDirectives::NoteOutput},
    {"output", &BatchDirectives::NoteOutput},
    {"parsable", &BatchDirectives::TakeNothing},
    {"partition", &BatchDirectives::TakePlace},
    {"qos", &BatchDirectives::TakePlace},
    {"quiet", &BatchDirectives::TakeNothing},
    {"requeue", &BatchDirectives::TakeSwitch},
    {"signal", &BatchDirectives::TakeSignal},
    {"test-only", &BatchDirectives::Refuse},
    {"time", &BatchDirectives::TakeTime},
    {"uid", &BatchDirectives::Refuse},
    {"usage", &BatchDirectives::Refuse},
    {"verbose", &BatchDirectives::TakeNothing},
    {"version", &BatchDirectives::Refuse},
    {"wait", &BatchDirectives::NoteOwn},
    {"wrap", &BatchDirectives::Refuse},
};

Result<void> BatchDirectives::Take(const BatchOption& option) {
  const auto* const row = std::ranges::find(kRows, option.name, &Row::name);
  return row != std::end(kRows) ? (this->*row->take)(option) : TakeAsIs(option);
}

Result<void> BatchDirectives::TakeName(const BatchOption& option) {
  wanted_.name = option.value;
  return {};
}

Result<void> BatchDirectives::TakePlace(const BatchOption& option) {
  const bool several_nodes =
      option.name == "nodelist" && option.value.find_first_of(",[/") != std::string::npos;
  if (!can_.placement || several_nodes) return TakeAsIs(option);
  Placement& place = wanted_.placement;
  if (option.name == "partition") {
    place.partitions = Split(option.value, ',');
  } else {
    (option.name == "account" ? place.account : option.name == "qos" ? place.qos : place.node) = option.value;
  }
  return {};
}

// "2", "2-4": Overcap gives each job a number that does not change.
Result<void> BatchDirectives::TakeNodes(const BatchOption& option) {
  const size_t dash = option.value.find('-');
  const auto least = Count(std::string_view(option.value).substr(0, dash));
  if (!least) return Bad(option, "is no number of nodes");
  if (dash != std::string::npos && Count(option.value.substr(dash + 1)) != least)
    Note(option, StrCat("the job gets ", CountOf(*least, "node"), ", the least that it takes"));
  wanted_.nodes = least;
  return {};
}

Result<void> BatchDirectives::TakeCount(const BatchOption& option) {
  const auto count = Count(option.value);
  if (!count) return Bad(option, "is no number of processes or CPUs");
  (option.name == "ntasks"            ? tasks_
   : option.name == "ntasks-per-node" ? tasks_per_node_
                                      : cpus_per_task_) = count;
  return {};
}

Result<void> BatchDirectives::TakeMemory(const BatchOption& option) {
  if (option.value == "0") return TakeAsIs(option);  // all of a node's
  const int64_t bytes = Bytes(option.value);
  if (bytes == 0) return Bad(option, "is no size like 4G");
  wanted_.mem_bytes = bytes;
  return {};
}

Result<void> BatchDirectives::TakeTime(const BatchOption& option) {
  const std::string& text = option.value;
  if (text == "0" || text == "infinite" || text == "unlimited" || text == "INFINITE" || text == "UNLIMITED")
    return TakeAsIs(option);
  const int64_t seconds = Seconds(text);
  if (seconds <= 0) return Bad(option, "is no time limit like 90 (minutes), 4:00:00 or 1-12");
  wanted_.time_seconds = seconds;
  return {};
}

Result<void> BatchDirectives::TakeGres(const BatchOption& option) {
  std::vector<std::string> others;
  std::vector<std::optional<GpuAmount>> gpus;
  for (const std::string& part : Split(option.value, ',')) {
    std::string_view text = part;
    for (const std::string_view prefix : {"gres:", "gres/"}) {
      if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
    }
    if (text == "gpu") {
      gpus.emplace_back(GpuAmount{});
    } else if (text.starts_with("gpu:")) {
      gpus.push_back(Gpus(text.substr(4)));
    } else if (text != "none") {
      others.push_back(part);
    }
  }
  if (gpus.size() > 1 || (gpus.size() == 1 && !gpus[0])) return TakeAsIs(option);  // several types
  if (gpus.size() == 1) gpus_per_node_ = gpus[0]->count, wanted_.gpu_type = gpus[0]->type;
  return others.empty() ? Result<void>() : TakeAsIs({option.name, Join(others, ","), option.line});
}

Result<void> BatchDirectives::TakeGpus(const BatchOption& option) {
  const auto amount = Gpus(option.value);
  if (!amount) return TakeAsIs(option);  // several types
  (option.name == "gpus"            ? gpus_
   : option.name == "gpus-per-node" ? gpus_per_node_
                                    : gpus_per_task_) = amount->count;
  wanted_.gpu_type = amount->type;
  return {};
}

Result<void> BatchDirectives::TakeArray(const BatchOption& option) {
  auto array = ParseArraySpec(option.value);
  if (!array) return Bad(option, StrCat("is no array: ", array.error().message), array.error().hint);
  wanted_.array = std::move(*array);
  return {};
}

Result<void> BatchDirectives::TakeSwitch(const BatchOption& option) {
  if (option.name == "hold") {
    wanted_.hold = true;
  } else {
    wanted_.requeue = option.name == "requeue";
  }
  return {};
}

// "B:USR1@120": to the shell of the script alone. Without B: to what the script runs.
Result<void> BatchDirectives::TakeSignal(const BatchOption& option) {
  std::string_view text = option.value;
  bool shell = false;
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    shell = text.substr(0, colon).find('B') != std::string_view::npos;
    text.remove_prefix(colon + 1);
  }
  const size_t at = text.find('@');
  std::string_view signal = text.substr(0, at);
  const int64_t seconds =
      at == std::string_view::npos ? kUsualWarning : Count(text.substr(at + 1), 0).value_or(0);
  if (seconds == 0 || signal.empty()) return Bad(option, "is no signal like USR1@120");
  if (signal.starts_with("SIG")) signal.remove_prefix(3);
  if (signal != "USR1" && signal != "10") {
    Note(option, "the signal before the time limit is always USR1");
  } else if (!can_.warning) {
    not_here_.push_back(option.Text());
  } else {
    wanted_.warn_seconds = seconds;
    wanted_.warn_shell = shell;
  }
  return {};
}

Result<void> BatchDirectives::TakeExport(const BatchOption& option) {
  for (const std::string& part : Split(option.value, ',')) {
    const size_t equals = part.find('=');
    if (part == "ALL" || part.empty()) continue;
    if (part == "NONE" || part == "NIL") {
      Note(option, "jobs get the variables of the shell that submits them");
    } else if (equals != std::string::npos && equals > 0) {
      wanted_.env.push_back(part);
    }
  }
  return {};
}

Result<void> BatchDirectives::TakeFolder(const BatchOption& option) {
  if (option.value.starts_with('/') || option.value.starts_with("..")) {
    Note(option, "the script runs in its captured copy; --workdir names another place");
  } else {
    wanted_.workdir = option.value;
  }
  return {};
}

// "afterok:12:13,afterany:14"
Result<void> BatchDirectives::TakeDependency(const BatchOption& option) {
  for (const std::string& part : Split(option.value, ',')) {
    const std::vector<std::string> words = Split(part, ':');
    const bool any = words[0] == "afterany";
    if ((!any && words[0] != "afterok") || words.size() < 2)
      return Bad(option, "cannot be said to overcap", "afterok and afterany can; or --after, --after-any");
    for (size_t i = 1; i < words.size(); ++i) wanted_.after.push_back({words[i], any});
  }
  return {};
}

Result<void> BatchDirectives::TakeAsIs(const BatchOption& option) {
  (can_.placement ? wanted_.placement.args : not_here_).push_back(option.Text());
  return {};
}

Result<void> BatchDirectives::NoteOutput(const BatchOption& option) {
  outputs_.push_back(option.Text());
  return {};
}

Result<void> BatchDirectives::NoteOwn(const BatchOption& option) {
  Note(option, "overcap sees to that itself");
  return {};
}

Result<void> BatchDirectives::Refuse(const BatchOption& option) {
  return Bad(option, "cannot stand in a script that overcap submits");
}

void BatchDirectives::CompleteRanks(JobRequest* request) {
  const int nodes = request->nodes.value_or(1);
  if (!request->ranks_per_node && !request->one_rank_per_node) {
    if (tasks_ && !tasks_per_node_) {
      if (!request->nodes && *tasks_ > 1) {
        wanted_.notes.push_back(
            StrCat("the ", *tasks_, " processes of the script get one node; --nodes spreads them"));
      }
      request->ranks_per_node = std::max(1, (*tasks_ + nodes - 1) / nodes);
    } else {
      request->ranks_per_node = tasks_per_node_;
    }
  }
  const int ranks = request->one_rank_per_node ? 1 : request->ranks_per_node.value_or(1);
  if (!request->cpus && cpus_per_task_) request->cpus = std::min(kMost, *cpus_per_task_ * ranks);
}

void BatchDirectives::CompleteGpus(JobRequest* request) {
  if (request->gpus) return;
  const int nodes = request->nodes.value_or(1);
  const int ranks = request->one_rank_per_node ? 1 : request->ranks_per_node.value_or(1);
  int64_t gpus = -1;
  if (gpus_per_task_) gpus = int64_t{*gpus_per_task_} * ranks * nodes;
  if (gpus_) gpus = *gpus_;
  if (gpus_per_node_) gpus = int64_t{*gpus_per_node_} * nodes;
  if (gpus < 0) return;
  request->gpus = static_cast<int>(std::min<int64_t>(gpus, kMost));
  // Slurm hands its tasks GPUs of their own only where the job asks for them in these words.
  if (gpus_per_task_ && !gpus_ && !gpus_per_node_ && can_.placement && gpus > 0 && request->gpu_type.empty())
    wanted_.placement.args.push_back(
        StrCat("--gpus-per-task=", wanted_.gpu_type, wanted_.gpu_type.empty() ? "" : ":", *gpus_per_task_));
  if (request->gpu_type.empty() && gpus > 0) request->gpu_type = wanted_.gpu_type;
}

void BatchDirectives::CompletePlacement(JobRequest* request) {
  Placement& place = request->placement;
  Placement& wanted = wanted_.placement;
  if (place.partitions.empty()) place.partitions = std::move(wanted.partitions);
  if (place.account.empty()) place.account = std::move(wanted.account);
  if (place.qos.empty()) place.qos = std::move(wanted.qos);
  if (place.node.empty()) place.node = std::move(wanted.node);
  place.args.insert(place.args.begin(), wanted.args.begin(), wanted.args.end());
}

void BatchDirectives::Complete(JobRequest* request) {
  if (!request->nodes) request->nodes = wanted_.nodes;
  CompleteRanks(request);
  CompleteGpus(request);
  CompletePlacement(request);
  if (request->name.empty()) request->name = std::move(wanted_.name);
  if (request->workdir.empty()) request->workdir = std::move(wanted_.workdir);
  if (!request->mem_bytes) request->mem_bytes = wanted_.mem_bytes;
  if (!request->time_seconds) request->time_seconds = wanted_.time_seconds;
  if (!request->sweep.empty() && !wanted_.array.empty())
    wanted_.notes.push_back("the sweep takes the place of the script's own array");
  if (request->array.empty()) request->array = std::move(wanted_.array);
  request->hold = request->hold || wanted_.hold;
  if (!request->requeue) request->requeue = wanted_.requeue;
  if (!request->warn_seconds) request->warn_seconds = wanted_.warn_seconds;
  request->warn_shell = wanted_.warn_shell;
  request->env.insert(request->env.begin(), wanted_.env.begin(), wanted_.env.end());
  if (!outputs_.empty()) {
    wanted_.notes.push_back(StrCat("what the script writes goes to the job's own log, not by ",
                                   ToUtf8(Join(outputs_, " ")), "; overcap logs shows it"));
  }
  if (!not_here_.empty())
    wanted_.notes.push_back(StrCat("this cluster has no use for ", ToUtf8(Join(not_here_, " "))));
  request->notes.insert(request->notes.end(), wanted_.notes.begin(), wanted_.notes.end());
}

}  // namespace overcap
