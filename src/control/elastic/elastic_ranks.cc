// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/elastic_ranks.h"

#include <algorithm>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "launch/local/node_ranks.h"
#include "launch/rank_threads.h"
#include "model/json_fields.h"
#include "sys/posix_files.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int64_t kMostErrorFile = 1 << 20;

std::string TextIn(const nlohmann::json& json, const char* key) {
  const auto at = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && at != json.end() && at->is_string() ? at->get<std::string>() : "";
}

void SetTorchVariables(const ElasticRanks& ranks, int local, Variables* env) {
  const elastic::OrderRun& plan = ranks.plan;
  const auto set = [env](std::string_view name, int64_t value) { env->Set(name, StrCat(value)); };
  const int rank = plan.first_rank + local;
  set("GROUP_RANK", plan.group_rank);
  set("GROUP_WORLD_SIZE", plan.group_size);
  set("ROLE_RANK", rank);
  set("ROLE_WORLD_SIZE", plan.world_size);
  env->Set("ROLE_NAME", ranks.options.role);
  env->Set("TORCHELASTIC_RUN_ID", ranks.run_id);
  set("TORCHELASTIC_RESTART_COUNT", plan.restarts);
  set("TORCHELASTIC_MAX_RESTARTS", ranks.options.max_restarts);
  env->Set("TORCHELASTIC_USE_AGENT_STORE", "False");
  env->Set("TORCHELASTIC_ERROR_FILE", ErrorFileOf(ranks.log_folder, rank));
  set("OVERCAP_ELASTIC_EPOCH", plan.epoch);
  env->Set("OVERCAP_ELASTIC_SOCKET", ranks.socket);
  for (const std::string_view name : {"NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"}) {
    if (!env->Has(name)) env->Set(name, "1");
  }
}

// As torchrun has it: LOCAL_RANK 0, and the GPU of the real one alone.
void SetVirtualLocalRank(int local, Variables* env) {
  env->Set("LOCAL_RANK", "0");
  const bool hip = !env->Get("HIP_VISIBLE_DEVICES").empty();
  const std::string name = hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
  const std::vector<std::string> visible = Split(env->Get(name), ',');
  const size_t at = static_cast<size_t>(local);
  const std::string own =
      env->Has(name) && at < visible.size() ? std::string(Trim(visible[at])) : StrCat(local);
  env->Set("CUDA_VISIBLE_DEVICES", own);
  if (hip) env->Set(name, own);
}

}  // namespace

std::string LineMark(std::string_view text, std::string_view role, int local_rank, int rank,
                     std::string_view host) {
  const std::pair<std::string_view, std::string> words[] = {{"role_name", std::string(role)},
                                                            {"local_rank", StrCat(local_rank)},
                                                            {"rank", StrCat(rank)},
                                                            {"hostname", std::string(host)}};
  std::string out(text);
  for (const auto& [name, value] : words) {
    const std::string macro = StrCat("${", name, "}");
    for (size_t at = out.find(macro); at != out.npos; at = out.find(macro, at + value.size()))
      out.replace(at, macro.size(), value);
  }
  return out;
}

std::string ErrorFileOf(const std::string& log_folder, int rank) {
  return StrCat(log_folder, "/error-", rank, ".json");
}

std::vector<GroupMember> ElasticMembers(const ElasticRanks& ranks) {
  const elastic::OrderRun& plan = ranks.plan;
  NodeRanks node;
  node.node_rank = plan.group_rank;
  node.first_rank = plan.first_rank;
  node.ranks = ranks.options.ranks;
  node.world_size = plan.world_size;
  node.command = ranks.options.command;
  node.env = ranks.env;
  node.folder = ranks.folder;
  node.master_addr = plan.master_addr;
  node.master_port = plan.master_port;
  node.job_cpus = JobCpusHere(Variables(ranks.env));
  std::vector<GroupMember> members = MembersOf(node);
  for (int local = 0; local < node.ranks; ++local) {
    Variables env(members[local].request.env);
    SetTorchVariables(ranks, local, &env);
    if (ranks.options.virtual_local_rank) SetVirtualLocalRank(local, &env);
    if (!ranks.options.signals_text.empty())
      env.Set("TORCHELASTIC_SIGNALS_TO_HANDLE", ranks.options.signals_text);
    members[local].request.env = env.entries();
  }
  if (node.ranks > 0 && isatty(STDIN_FILENO) == 0) members[0].request.stdin_fd = STDIN_FILENO;
  return members;
}

RankError ParseErrorFile(const std::string& text) {
  RankError error;
  const auto json = ParseJsonObject(text, "error file");
  if (!json || !json->contains("message")) return error;
  const nlohmann::json& message = (*json)["message"];
  if (message.is_string()) {
    error.message = message.get<std::string>();
  } else if (message.is_object()) {
    error.message = TextIn(message, "message");
    const auto extra = message.find("extraInfo");
    if (extra != message.end()) error.traceback = TextIn(*extra, "py_callstack");
  }
  const std::vector<std::string> lines = Split(Trim(error.message), '\n');
  if (error.traceback.empty() && lines.size() > 1) error.traceback = error.message;
  error.message = ToUtf8(lines.size() > 1 ? Trim(lines.back()) : Trim(error.message)).substr(0, 500);
  return error;
}

RankError ReadErrorFile(const std::string& path) {
  const auto text = PosixFiles().ReadRange(path, 0, kMostErrorFile);
  return text ? ParseErrorFile(*text) : RankError();
}

}  // namespace overcap
