// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/elastic_ranks.h"

#include <unistd.h>
#include <utility>

#include "base/text.h"
#include "launch/local/node_ranks.h"
#include "launch/rank_threads.h"
#include "sys/variables.h"

namespace overcap {
namespace {

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

TorchRun RunOf(const ElasticRanks& ranks) {
  TorchRun run{.id = ranks.run_id,
               .errors = ranks.log_folder,
               .restarts = ranks.plan.restarts,
               .max_restarts = ranks.options.max_restarts,
               .nodes = ranks.plan.group_size,
               .role = ranks.options.role};
  if (!ranks.options.signals_text.empty()) run.signals = ranks.options.signals_text;
  return run;
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
  node.run = RunOf(ranks);
  node.job_cpus = JobCpusHere(Variables(ranks.env));
  std::vector<GroupMember> members = MembersOf(node);
  for (int local = 0; local < node.ranks; ++local) {
    Variables env(members[local].request.env);
    env.Set("OVERCAP_ELASTIC_EPOCH", StrCat(plan.epoch));
    env.Set("OVERCAP_ELASTIC_SOCKET", ranks.socket);
    if (ranks.options.virtual_local_rank) SetVirtualLocalRank(local, &env);
    members[local].request.env = env.entries();
  }
  if (node.ranks > 0 && isatty(STDIN_FILENO) == 0) members[0].request.stdin_fd = STDIN_FILENO;
  return members;
}

}  // namespace overcap
