// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/torchrun_words.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <iterator>

#include "base/text.h"
#include "cli/commands/torchrun_console.h"

namespace overcap::cli {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int kMost = 1'000'000;

}  // namespace

Result<int> WholeNumber(std::string_view flag, std::string_view text, int least, int absent) {
  if (text.empty()) return absent;
  const auto value = ParseInt(text);
  if (!value || *value < least || *value > kMost) {
    return Fail(ErrorCode::kUsage, StrCat(flag, ": ", Quoted(text), " is no number from ", least, " on"));
  }
  return static_cast<int>(*value);
}

Result<void> ReadTorchPlace(const Args& args, const LaunchOptions& common, ElasticOptions* options) {
  const elastic::TorchPlace asked{args.Get("--rdzv-backend"), args.Get("--rdzv-endpoint"),
                                  args.Get("--rdzv-id"),      args.Get("--master-addr"),
                                  common.master_port,         options->max_nodes};
  OC_TRY(meeting, elastic::TorchRendezvous(asked));
  options->place = std::move(meeting.place);
  options->master_port = meeting.master_port;
  options->run_id = asked.id;
  if (asked.id.empty() && !options->place.id.empty()) options->run_id = "none";  // as torchrun calls it
  return {};
}

namespace {

// Signals by name. The usual four stop the node anyhow.
Result<void> ReadSignals(const Args& args, ElasticOptions* options) {
  options->signals_text = args.Get("--signals-to-handle");
  if (options->signals_text.empty()) return {};
  for (const std::string& word : Split(options->signals_text, ',')) {
    const std::string_view name = Trim(word);
    int found = 0;
    for (int number = 1; number < NSIG && found == 0; ++number) {
      const char* known = sigabbrev_np(number);
      if (known != nullptr && name == StrCat("SIG", known)) found = number;
    }
    constexpr int kNever[] = {0, SIGKILL, SIGSTOP, SIGCHLD};
    constexpr int kAnyhow[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    if (std::ranges::find(kNever, found) != std::end(kNever)) {
      return Fail(ErrorCode::kUsage, StrCat(args.Typed("--signals-to-handle"), ": ", Quoted(name),
                                            " is no signal that can be handled, such as SIGUSR1"));
    }
    if (std::ranges::find(kAnyhow, found) == std::end(kAnyhow)) options->signals.push_back(found);
  }
  return {};
}

Result<void> ReadRankWords(const Args& args, const Variables& variables, ElasticOptions* options) {
  if (args.Has("--role")) options->role = args.Get("--role");
  options->virtual_local_rank = args.Has("--virtual-local-rank");
  const std::string_view name =
      variables.Get("HIP_VISIBLE_DEVICES").empty() ? "CUDA_VISIBLE_DEVICES" : "HIP_VISIBLE_DEVICES";
  const int gpus = static_cast<int>(Split(variables.Get(name), ',').size());
  if (options->virtual_local_rank && variables.Has(name) && gpus < options->ranks) {
    return Fail(ErrorCode::kUsage, StrCat("--virtual-local-rank: ", name, " has ", CountOf(gpus, "GPU"),
                                          " for ", options->ranks, " ranks"));
  }
  options->mark = args.Get("--log-line-prefix-template");
  if (options->mark.empty()) options->mark = variables.Get("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE");
  if (options->mark.empty()) options->mark = "[${role_name}${local_rank}]:";
  OC_TRY(views, ReadViews(args, options->ranks));
  options->views = std::move(views);
  return ReadSignals(args, options);
}

Result<void> ReadGrace(const Args& args, const LaunchOptions& common, const Variables& variables,
                       ElasticOptions* options) {
  constexpr std::string_view kVariable = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT";
  if (args.Has("--grace") || args.Has("--shutdown-timeout")) {
    options->grace_us = common.grace_us;
  } else if (!variables.Get(kVariable).empty()) {
    OC_TRY(seconds, WholeNumber(kVariable, variables.Get(kVariable), 0, 0));
    options->grace_us = seconds * kSecond;
  }
  return {};
}

}  // namespace

Result<void> ReadTorchWords(const Args& args, const LaunchOptions& common, const Variables& variables,
                            ElasticOptions* options) {
  OC_TRY_VOID(ReadGrace(args, common, variables, options));
  return ReadRankWords(args, variables, options);
}

}  // namespace overcap::cli
