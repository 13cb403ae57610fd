// SPDX-License-Identifier: Apache-2.0
#include "agent/mounts_step.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "agent/slurm/side_step.h"
#include "base/text.h"
#include "stores/key_variables.h"
#include "sys/own_program.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr int64_t kStopUs = 60'000'000;  // to give up when the job is cancelled meanwhile

// Those that srun goes by are this job's, whatever job its submitter was in.
std::vector<std::string> WithOwnSlurm(const std::vector<std::string>& env, const LaunchCommand& step) {
  const auto of_slurm = [](const std::string& entry) { return entry.starts_with("SLURM"); };
  std::vector<std::string> all;
  std::copy_if(env.begin(), env.end(), std::back_inserter(all), std::not_fn(of_slurm));
  const std::vector<std::string> own = Variables::OfThisProcess().entries();
  std::copy_if(own.begin(), own.end(), std::back_inserter(all), of_slurm);
  Variables variables(std::move(all));
  for (const std::string& name : step.unset) variables.Remove(name);
  all = variables.entries();
  all.insert(all.end(), step.env.begin(), step.env.end());
  return all;
}

bool Writes(const MountSpec& mount) {
  return mount.mode == MountMode::kWrite || mount.mode == MountMode::kCopy;
}

}  // namespace

Result<void> MountsStep::Prepare(const std::string& code, std::vector<std::string> env) {
  if (spec_.mounts.empty()) return {};
  if (spec_.snapshot.empty())
    return Fail(ErrorCode::kUsage, "mounts need the job's own copy of its code, and it has none");
  // The environment of a job that goes through a store has no keys: each machine has its own.
  if (!spec_.store.empty()) env = WithStoreKeysOf(Variables::OfThisProcess(), env);
  const auto stop = [this] { return supervisor_.CancelRequested(); };
  std::vector<std::string> words = Words(code);
  // Named as agents: whoever ends what ranks have left behind leaves them and all that they started alone.
  std::vector<std::string> argv = words;
  argv.insert(argv.begin(), OwnProgram());
  OC_TRY(own, KeeperLink::Start({std::move(argv), env, LogPath(), {}}));
  own_.emplace(std::move(own));
  if (const auto heard = own_->AwaitReady(clock_, stop); heard != KeeperLink::Heard::kAll)
    return Fail(GiveUp(heard, *own_));
  if (nodes_ == nullptr) return {};
  // One link in the job's folder serves all nodes: it leads to the same place on each.
  words.insert(words.end(), {"--place", own_->words().place});
  auto program = OnOthers(words, env);
  auto others = program ? KeeperLink::Start(*program) : Result<KeeperLink>(Fail(program.error()));
  if (!others) {
    ReleaseAll();
    return Fail(std::move(others).error());
  }
  others_.emplace(*std::move(others));
  const auto heard = others_->AwaitReady(clock_, stop);
  return heard == KeeperLink::Heard::kAll ? Result<void>() : Fail(GiveUp(heard, *others_));
}

std::vector<std::string> MountsStep::Words(const std::string& code) const {
  return {"agent",     "mounts",
          "--job",     options_.job_dir,
          "--attempt", std::to_string(options_.attempt),
          "--slot",    std::to_string(options_.slot),
          "--folder",  code};
}

Result<KeeperLink::Program> MountsStep::OnOthers(const std::vector<std::string>& words,
                                                 const std::vector<std::string>& env) const {
  const std::span<const std::string> nodes = std::span(nodes_->nodes).subspan(1);
  std::vector<std::string> command = words;
  command.insert(command.begin(), nodes_->binary);
  // A node that fails is the ranks' to notice; the others still have to take all away.
  OC_TRY(step,
         SideStep(nodes_->srun, nodes,
                  {"--job-name=overcap-mounts", "--no-kill", "--kill-on-bad-exit=0", "--wait=0"}, command));
  KeeperLink::Program program{
      {OwnProgram(), "agent", "beside"}, WithOwnSlurm(env, step), LogPath(), {nodes.begin(), nodes.end()}};
  program.argv.insert(program.argv.end(), step.argv.begin(), step.argv.end());
  return program;
}

Error MountsStep::GiveUp(KeeperLink::Heard heard, const KeeperLink& link) {
  const std::string failure = link.words().failure;
  const bool cancelled = supervisor_.CancelRequested();
  ReleaseAll();
  if (cancelled) return {ErrorCode::kConflict, "cancelled while stores were mounted", ""};
  if (heard == KeeperLink::Heard::kFailed) return {ErrorCode::kUnavailable, failure, ""};
  return {ErrorCode::kUnavailable,
          StrCat("the process that mounts stores has ended early; see '", LogPath(), "'"), ""};
}

// And waits until all is taken away.
void MountsStep::ReleaseAll() {
  const int64_t most_us = supervisor_.CancelRequested() ? kStopUs : KeeperLink::kSilentUs;
  for (auto* link : {&own_, &others_}) {
    if (*link) (*link)->Release();
  }
  for (auto* link : {&own_, &others_}) {
    if (!*link) continue;
    const bool failed = !(*link)->words().failure.empty();
    const auto heard = (*link)->AwaitReleased(clock_, most_us);
    KeeperWords& words = (*link)->words();
    std::move(words.notes.begin(), words.notes.end(), std::back_inserter(notes_));
    std::move(words.unsaved.begin(), words.unsaved.end(), std::back_inserter(unsaved_));
    if (heard == KeeperLink::Heard::kAll || failed) continue;
    if (link == &others_) NameSilentNodes();
    if (link == &own_ && words.unsaved.empty())
      unsaved_.push_back(
          "the process that holds the job's mounts has ended early; 'overcap gc' on that node clears what it "
          "left");
  }
  own_.reset();
  others_.reset();
}

void MountsStep::NameSilentNodes() {
  std::vector<std::string> silent;
  for (const std::string& node : std::span(nodes_->nodes).subspan(1)) {
    if (!others_->words().released.contains(node)) silent.push_back(StrCat("'", node, "'"));
  }
  if (silent.empty()) return;
  const bool one = silent.size() == 1;
  const bool writes = std::any_of(spec_.mounts.begin(), spec_.mounts.end(), Writes);
  std::string text = StrCat(one ? "node " : "nodes ", Join(silent, ", "), one ? " was" : " were",
                            " lost before the job's mounts there were taken away; 'overcap gc' there clears "
                            "what is left");
  (writes ? unsaved_ : notes_).push_back(std::move(text));
}

std::string MountsStep::Release() {
  if (own_) ReleaseAll();
  return Join(std::exchange(unsaved_, {}), "; ");
}

std::vector<std::string> MountsStep::TakeNotes() {
  std::vector<std::string> notes = std::exchange(notes_, {});
  for (auto* link : {&own_, &others_}) {
    if (!*link) continue;
    for (std::string& note : std::exchange((*link)->words().notes, {})) notes.push_back(std::move(note));
  }
  return notes;
}

}  // namespace overcap
