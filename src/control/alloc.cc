// SPDX-License-Identifier: Apache-2.0
#include "control/alloc.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/cluster_sessions.h"
#include "control/others_job.h"
#include "control/ssh_config_file.h"
#include "control/ssh_keys.h"
#include "control/submitter_environment.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

// Between a name's entry in the book and its job's in the cluster.
constexpr int64_t kBeingMadeUs = 60'000'000;

bool Owns(const SshEntry& entry, const HeldAllocation& allocation) {
  return entry.name == allocation.name && entry.job == allocation.job;
}

// True: its job has ended, or there is none.
bool IsOver(const AllocWorld& world, AllocationState* state) {
  const auto cluster = world.cluster(state->allocation.cluster);
  if (!cluster) {
    state->trouble = cluster.error().message;
    return false;
  }
  auto records = (*cluster)->Query({state->allocation.job});
  if (!records) {
    state->trouble = records.error().message;
    const bool young = world.clock.WallUs() - state->allocation.made_us < kBeingMadeUs;
    if (records.error().code == ErrorCode::kNotFound && young) state->trouble = "is being submitted";
    return records.error().code == ErrorCode::kNotFound && !young;
  }
  state->record = std::move(records->front());
  return IsFinal(state->record->state);
}

// The holder itself has told ssh where it is; only where it could not the cluster is asked.
std::vector<std::string> NodesOf(const AllocWorld& world, const AllocationState& state,
                                 const std::string& told) {
  if (!state.record || state.record->state != JobState::kRunning) return {};
  if (!told.empty()) return {told};
  const auto cluster = world.cluster(state.allocation.cluster);
  ClusterSessions* sessions = cluster ? (*cluster)->Sessions() : nullptr;
  if (sessions == nullptr) return {};
  auto nodes = sessions->NodesOf(*state.record);
  return nodes ? std::move(*nodes) : std::vector<std::string>();
}

// An entry that leads to a job that does not run: its holder was killed before it could remove it.
void RemoveDeadEntry(const AllocWorld& world, const AllocationState& state, bool over) {
  const bool waits = state.record && state.record->state != JobState::kRunning;
  if (!over && !waits) return;
  (void)RemoveSshHosts(world.home, [&](const SshEntry& entry) { return Owns(entry, state.allocation); });
}

// Mends and tells whether it lives.
bool Look(const AllocWorld& world, AllocationBook* book, AllocationState* state) {
  const bool over = IsOver(world, state);
  RemoveDeadEntry(world, *state, over);
  if (over) book->Forget(state->allocation);
  if (over) return false;
  const std::vector<SshEntry> entries = ReadSshEntries(world.home);
  const auto entry = std::find_if(entries.begin(), entries.end(),
                                  [&](const SshEntry& one) { return Owns(one, state->allocation); });
  state->ssh = entry != entries.end();
  state->nodes = NodesOf(world, *state, state->ssh ? entry->node : "");
  return true;
}

// Entries whose name is not in the book any more, though their job was made under one of these roots.
void RemoveLeftEntries(const AllocWorld& world) {
  (void)RemoveSshHosts(world.home, [&](const SshEntry& entry) {
    bool ours = false, known = false;
    for (const std::string& root : world.roots) {
      const auto found = AllocationBook(root).Find(entry.name);
      known = known || (found && found->job == entry.job);
      ours = ours || PosixFiles().Exists(StrCat(root, "/jobs/", entry.job));
    }
    return ours && !known;
  });
}

JobSpec HoldingSpec(JobSpec spec, const AllocRequest& request) {
  spec.allocation = request.name;
  spec.source = request.job.workdir;
  return spec;
}

// Without keys the allocation is as good for everything but ssh.
std::string KeysNote(const std::string& root) {
  const auto made = MakeSshKeys(SshKeysOf(root));
  return made ? "" : StrCat("ssh cannot be used with it: ", made.error().message);
}

}  // namespace

std::vector<AllocationState> LookAtAllocations(const AllocWorld& world) {
  std::vector<AllocationState> living;
  for (const std::string& root : world.roots) {
    AllocationBook book(root);
    for (HeldAllocation& allocation : book.All()) {
      AllocationState state;
      state.file = book.PathOf(allocation.name);
      state.allocation = std::move(allocation);
      if (Look(world, &book, &state)) living.push_back(std::move(state));
    }
  }
  RemoveLeftEntries(world);
  return living;
}

std::optional<AllocationState> FindAllocation(const AllocWorld& world, std::string_view name) {
  for (const std::string& root : world.roots) {
    AllocationBook book(root);
    auto found = book.Find(name);
    if (!found) continue;
    AllocationState state;
    state.file = book.PathOf(name);
    state.allocation = std::move(*found);
    if (Look(world, &book, &state)) return state;
  }
  return std::nullopt;
}

Result<MadeAllocation> MakeAllocation(AllocRequest request, const AllocWorld& world,
                                      const SubmitTools& tools) {
  OC_TRY_VOID(CheckAllocationName(request.name));
  if (const auto held = FindAllocation(world, request.name)) {
    const std::string where = held->nodes.empty() ? "" : StrCat(" on ", Join(held->nodes, ", "));
    return Fail(ErrorCode::kConflict,
                StrCat("there is an allocation '", request.name, "' already: job '", held->allocation.job,
                       "'", where),
                StrCat("overcap release ", request.name, " ends it, --name gives this one another name"));
  }
  const std::string root = world.roots.front();
  AllocationBook book(root);
  MadeAllocation made;
  made.state.file = book.PathOf(request.name);
  OC_TRY_VOID(PosixFiles().MakeFolders(root + "/allocations"));
  // The folder that is captured must not be the user's: nothing is, when the ranks start outside of it.
  request.job.workdir = std::exchange(request.job.folder, root + "/allocations");
  request.job.command = {request.binary, "hold-allocation", made.state.file};
  OC_TRY(prepared, PrepareJob(request.job, tools));
  OC_TRY(plan, tools.cluster.Plan(HoldingSpec(prepared.plan.spec, request)));
  if (request.jump.empty()) {
    if (std::string note = KeysNote(root); !note.empty()) made.notes.push_back(std::move(note));
  }
  HeldAllocation& allocation = made.state.allocation;
  allocation = {.name = request.name,
                .job = plan.spec.id,
                .cluster = tools.cluster.Name(),
                .home = request.home,
                .binary = request.binary,
                .config = request.config,
                .variables = {},
                .user = plan.spec.user,
                .jump = request.jump,
                .made_us = tools.clock.WallUs()};
  if (ClusterSessions* sessions = tools.cluster.Sessions()) allocation.variables = sessions->Contact();
  OC_TRY_VOID(book.Add(allocation));
  auto record = tools.cluster.Submit(plan);
  if (!record) {
    // After kUnavailable the job may exist: then the name stays its own until it is known that it does not.
    if (record.error().code != ErrorCode::kUnavailable) book.Forget(allocation);
    return Fail(std::move(record).error());
  }
  made.state.record = std::move(*record);
  return made;
}

Result<bool> EndAllocation(const AllocWorld& world, const AllocationState& state, int64_t patience_seconds) {
  OC_TRY(cluster, world.cluster(state.allocation.cluster));
  OC_TRY_VOID(cluster->Cancel({state.allocation.job}, "released"));
  OC_TRY(ended, cluster->Wait({state.allocation.job}, WaitUntil::kEnded, patience_seconds));
  if (!ended) return false;
  AllocationBook(RootOfAllocationFile(state.file)).Forget(state.allocation);
  OC_TRY_VOID(
      RemoveSshHosts(world.home, [&](const SshEntry& entry) { return Owns(entry, state.allocation); }));
  return true;
}

Result<Replacement> PlanConnection(Cluster& cluster, const JobRecord& record, const std::string& binary,
                                   const std::string& keys) {
  OC_TRY_VOID(CheckNotOthers(record));
  std::vector<std::string> words = {binary,  "enter-sshd", "--keys",    keys,
                                    "--job", record.dir,   "--attempt", std::to_string(record.attempt)};
  ClusterSessions* sessions = cluster.Sessions();
  if (sessions == nullptr) {
    return Replacement{
        .program = binary, .argv = std::move(words), .environment = OwnEnvironment(), .folder = "/"};
  }
  const std::string here = sessions->VariablesOfANode();
  if (!here.empty()) words.insert(words.end(), {"--here", here});
  AttachRequest request;
  request.command = std::move(words);
  request.job_environment = false;
  request.stream = true;
  return sessions->PlanAttach(record, request);
}

}  // namespace overcap
