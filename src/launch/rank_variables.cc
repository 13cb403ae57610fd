// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_variables.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/text.h"
#include "launch/compose/launch_command.h"
#include "launch/rank_plan.h"

namespace overcap {
namespace {

// Which variables of a family tell what; of several the first that is set. "": the family has none.
struct Family {
  Flavour flavour;
  const char* name;  // for RankPlace::from
  std::vector<const char*> rank, world_size, local_rank, local_world_size;
  const char* node_rank;
  std::vector<const char*> needs;  // it is there only when all of these are set
};

// The innermost first. A shell inside of a Slurm step may have PMI_RANK of that step, hence Hydra is known by
// its local rank; the batch step of a job has a SLURM_PROCID but no SLURM_STEP_NUM_TASKS.
const std::vector<Family>& Families() {
  static const std::vector<Family> families = {
      {Flavour::kLocal,
       "TORCHELASTIC_*",
       {"RANK"},
       {"WORLD_SIZE"},
       {"LOCAL_RANK"},
       {"LOCAL_WORLD_SIZE"},
       "GROUP_RANK",
       {"TORCHELASTIC_RUN_ID", "RANK"}},
      {Flavour::kOpenMpi,
       "OMPI_COMM_WORLD_*",
       {"OMPI_COMM_WORLD_RANK"},
       {"OMPI_COMM_WORLD_SIZE"},
       {"OMPI_COMM_WORLD_LOCAL_RANK"},
       {"OMPI_COMM_WORLD_LOCAL_SIZE"},
       "",  // OMPI_COMM_WORLD_NODE_RANK is a rank on the node, not the node's
       {"OMPI_COMM_WORLD_RANK"}},
      {Flavour::kPals,
       "PALS_*",
       {"PALS_RANKID"},
       {"PALS_SIZE", "PMI_SIZE"},
       {"PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"},
       {"PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
       "PALS_NODEID",
       {"PALS_RANKID"}},
      {Flavour::kHydra,
       "PMI_*",
       {"PMI_RANK"},
       {"PMI_SIZE"},
       {"MPI_LOCALRANKID", "PMI_LOCAL_RANK"},
       {"MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"},
       "",
       {"PMI_RANK", "MPI_LOCALRANKID"}},
      {Flavour::kSrun,
       "SLURM_*",
       {"SLURM_PROCID"},
       {"SLURM_STEP_NUM_TASKS"},
       {"SLURM_LOCALID"},
       {},
       "SLURM_NODEID",
       {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}},
      {Flavour::kHydra,
       "PMI_*",
       {"PMI_RANK"},
       {"PMI_SIZE"},
       {"PMI_LOCAL_RANK"},
       {"PMI_LOCAL_SIZE"},
       "",
       {"PMI_RANK", "PMI_SIZE"}},
      {Flavour::kPals,
       "PMIX_*",
       {"PMIX_RANK"},
       {"PMI_SIZE"},
       {"PMIX_LOCAL_RANK"},
       {"PMIX_LOCAL_SIZE"},
       "",
       {"PMIX_RANK"}},
  };
  return families;
}

bool IsThere(const Family& family, const Variables& variables) {
  return std::ranges::all_of(family.needs, [&](const char* name) { return !variables.Get(name).empty(); });
}

tl::unexpected<Error> Corrupt(std::string message) {
  return Fail(ErrorCode::kCorrupt, std::move(message));
}

constexpr int kNotTold = -1;

// The first of `names` that is set.
Result<int> Number(const std::vector<const char*>& names, const Variables& variables) {
  for (const char* name : names) {
    const std::string_view text = variables.Get(name);
    if (text.empty()) continue;
    const long long value = ParseInt(text).value_or(-1);
    if (value < 0 || value > kMaxRanks)
      return Corrupt(StrCat("variable '", name, "' is no number of a rank: '", ToUtf8(text), "'"));
    return static_cast<int>(value);
  }
  return kNotTold;
}

// All that a family says.
struct Told {
  int rank, world_size, local_rank, local_size, node_rank;
};
Result<Told> ReadFamily(const Family& family, const Variables& variables) {
  OC_TRY(rank, Number(family.rank, variables));
  OC_TRY(world_size, Number(family.world_size, variables));
  OC_TRY(local_rank, Number(family.local_rank, variables));
  OC_TRY(local_size, Number(family.local_world_size, variables));
  OC_TRY(node_rank, Number({family.node_rank}, variables));
  return Told{rank, world_size, local_rank, local_size, node_rank};
}

// What the launch has told with OVERCAP_LAUNCH_PLAN.
struct ToldPlan {
  std::string_view flavour;
  std::vector<int> ranks;  // of each host; empty: nothing was told
};
Result<ToldPlan> PlanFrom(const Variables& variables) {
  const std::string_view text = variables.Get(kPlanVariable);
  if (text.empty()) return ToldPlan{};
  const size_t colon = text.find(':');
  auto ranks = ParseRanksPerHost(colon == std::string_view::npos ? "" : text.substr(colon + 1));
  if (!ranks) return Corrupt(StrCat("variable '", kPlanVariable, "': ", ranks.error().message));
  return ToldPlan{text.substr(0, colon), std::move(*ranks)};
}

// A world of one that we made gives way to a launcher that it has started: `mpirun -n 4` in a job of one
// rank.
bool GivesWay(const Family& family, const Variables& variables) {
  return &family == &Families().front() && variables.Get("WORLD_SIZE") == "1" &&
         IsOwnRunId(variables.Get("TORCHELASTIC_RUN_ID"));
}

const Family* ChooseFamily(const Variables& variables, std::string_view flavour) {
  const Family* first = nullptr;
  for (const Family& family : Families()) {
    if (!IsThere(family, variables)) continue;
    if (flavour == FlavourName(family.flavour)) return &family;
    if (first == nullptr || GivesWay(*first, variables)) first = &family;
  }
  return first;
}

// SLURM_STEP_TASKS_PER_NODE, "2(x2),1": tasks of node `node_rank` of the step.
int SlurmTasksOn(int node_rank, std::string_view text) {
  long long node = 0;
  for (const std::string& part : Split(text, ',')) {
    const std::string_view piece = part;
    const size_t times = piece.find("(x");
    const long long tasks = ParseInt(piece.substr(0, times)).value_or(0);
    long long nodes = 1;
    if (times != std::string_view::npos)
      nodes =
          piece.ends_with(')') ? ParseInt(piece.substr(times + 2, piece.size() - times - 3)).value_or(0) : 0;
    if (tasks < 1 || tasks > kMaxRanks || nodes < 1 || nodes > kMaxRanks) return kNotTold;
    node += nodes;
    if (node_rank < node) return static_cast<int>(tasks);
  }
  return kNotTold;
}

// Place by the launch's plan; what the launcher said must agree with it.
Result<RankPlace> PlaceByPlan(const std::vector<int>& ranks, const Told& told, RankPlace place) {
  int first = 0;
  for (size_t host = 0; host < ranks.size() && place.local_world_size == 0; ++host) {
    if (place.rank < first + ranks[host]) {
      place.node_rank = static_cast<int>(host);
      place.local_world_size = ranks[host];
      place.local_rank = place.rank - first;
    }
    first += ranks[host];
  }
  place.world_size = std::accumulate(ranks.begin(), ranks.end(), 0);
  const auto differ = [](int by_launcher, int by_plan) {
    return by_launcher != kNotTold && by_launcher != by_plan;
  };
  if (differ(told.world_size, place.world_size))
    return Corrupt(
        StrCat(place.from, " says ", told.world_size, " ranks, the launch's plan says ", place.world_size));
  if (place.local_world_size == 0)
    return Corrupt(
        StrCat(place.from, " says rank ", place.rank, ", the launch's plan has ", place.world_size));
  if (differ(told.local_size, place.local_world_size))
    return Corrupt(StrCat(place.from, " says ", told.local_size, " ranks on the host of rank ", place.rank,
                          ", the launch's plan says ", place.local_world_size));
  if (differ(told.local_rank, place.local_rank))
    return Corrupt(StrCat(place.from, " says local rank ", told.local_rank, " for rank ", place.rank,
                          ", the launch's plan says ", place.local_rank));
  return place;
}

// Where nobody tells the node rank: by blocks of equal size, or dealt out one by one; -1 when it is neither.
int DerivedNodeRank(const RankPlace& place) {
  if (place.local_world_size == place.world_size) return 0;
  if (place.world_size % place.local_world_size != 0) return -1;
  const int nodes = place.world_size / place.local_world_size;
  if (place.rank % place.local_world_size == place.local_rank) return place.rank / place.local_world_size;
  if (place.rank / nodes == place.local_rank) return place.rank % nodes;
  return -1;
}

// Place by the launcher's word alone.
Result<RankPlace> PlaceByLauncher(const Told& told, RankPlace place) {
  if (told.world_size == kNotTold)
    return Corrupt(StrCat(place.from, " says rank ", place.rank, ", but not how many there are"));
  if (told.local_rank == kNotTold && told.world_size > 1)
    return Corrupt(
        StrCat(place.from, " says rank ", place.rank, " of ", told.world_size, ", but no local rank"));
  place.world_size = told.world_size;
  place.local_rank = std::max(0, told.local_rank);
  place.local_world_size = told.local_size;
  // Without a word about it, all are on one host if that fits.
  if (told.local_size == kNotTold)
    place.local_world_size = place.rank == place.local_rank ? place.world_size : 0;
  if (place.rank >= place.world_size)
    return Corrupt(StrCat(place.from, " says rank ", place.rank, " of ", place.world_size));
  if (place.local_rank >= place.local_world_size || place.local_world_size > place.world_size)
    return Corrupt(StrCat(place.from, " says local rank ", place.local_rank, " of ", place.local_world_size,
                          " and ", place.world_size, " ranks in all"));
  place.node_rank = told.node_rank != kNotTold ? told.node_rank : DerivedNodeRank(place);
  return place;
}

// 0: hosts have different numbers of ranks, and no plan tells how many hosts there are.
int NodesOf(const RankPlace& place) {
  const bool even = place.local_world_size > 0 && place.world_size % place.local_world_size == 0;
  return even ? place.world_size / place.local_world_size : 0;
}

}  // namespace

Result<RankPlace> RankPlaceFrom(const Variables& variables) {
  OC_TRY(plan, PlanFrom(variables));
  const Family* family = ChooseFamily(variables, plan.flavour);
  if (family == nullptr) return Fail(ErrorCode::kNotFound, "no launcher has started this process as a rank");
  OC_TRY(told, ReadFamily(*family, variables));
  if (family->flavour == Flavour::kSrun && told.node_rank != kNotTold)
    told.local_size = SlurmTasksOn(told.node_rank, variables.Get("SLURM_STEP_TASKS_PER_NODE"));
  RankPlace place;
  place.from = family->name;
  place.rank = told.rank;
  place.local_world_size = 0;
  return plan.ranks.empty() ? PlaceByLauncher(told, std::move(place))
                            : PlaceByPlan(plan.ranks, told, std::move(place));
}

void SetRankVariables(const RankTold& told, Variables* variables) {
  const RankPlace& place = told.place;
  const TorchRun& run = told.run;
  const auto text = [&](std::string_view name, std::string_view value) {
    value.empty() ? variables->Remove(name) : variables->Set(name, value);
  };
  const auto number = [&](std::string_view name, int value, bool known = true) {
    text(name, known ? std::to_string(value) : "");
  };
  const int nodes = run.nodes > 0 ? run.nodes : NodesOf(place);
  number("RANK", place.rank);
  number("WORLD_SIZE", place.world_size);
  number("LOCAL_RANK", place.local_rank);
  number("LOCAL_WORLD_SIZE", place.local_world_size);
  number("NODE_RANK", place.node_rank, place.node_rank >= 0);
  number("GROUP_RANK", place.node_rank, place.node_rank >= 0);
  number("GROUP_WORLD_SIZE", nodes, nodes > 0);
  number("ROLE_RANK", place.rank);
  number("ROLE_WORLD_SIZE", place.world_size);
  text("ROLE_NAME", run.role);
  text("MASTER_ADDR", told.master_addr);
  number("MASTER_PORT", told.master_port, told.master_port > 0);
  text("TORCHELASTIC_RUN_ID", run.id);
  number("TORCHELASTIC_RESTART_COUNT", run.restarts);
  number("TORCHELASTIC_MAX_RESTARTS", run.max_restarts);
  text("TORCHELASTIC_USE_AGENT_STORE", "False");  // rank 0 has the store: no agent of ours is one
  text("TORCHELASTIC_SIGNALS_TO_HANDLE", run.signals);
  text("TORCHELASTIC_ERROR_FILE", run.errors.empty() ? "" : ErrorFileOf(run.errors, place.rank));
  if (!variables->Has("TORCH_NCCL_ASYNC_ERROR_HANDLING")) text("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  SetThreads(RankThreads(told.cpus, place.local_world_size), variables);
}

}  // namespace overcap
