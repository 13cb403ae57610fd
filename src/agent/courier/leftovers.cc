// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/leftovers.h"

#include <algorithm>
#include <unistd.h>

#include "agent/courier/node_files.h"
#include "base/text.h"
#include "model/agent_report.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

constexpr std::string_view kSent = "/.sent", kVia = "/.via";

std::vector<std::string> NamesIn(const std::string& folder) {
  return PosixFiles().List(folder).value_or(std::vector<std::string>());
}

bool IsKept(std::string_view name) {
  return name.ends_with(".jsonl") || name.ends_with(".log");
}

// False also where the claim is of another machine or boot.
bool Lives(const std::string& claim_path) {
  const auto text = PosixFiles().Read(claim_path);
  const auto claim = text ? ClaimFromJson(*text) : Result<Claim>(Fail(text.error()));
  return claim &&
         IsAlive({static_cast<pid_t>(claim->pid), static_cast<uint64_t>(claim->start_ticks), claim->boot_id});
}

bool AnyLives(const std::string& attempt) {
  for (const std::string& name : NamesIn(attempt)) {
    if (name.ends_with(".claim") && Lives(StrCat(attempt, "/", name))) return true;
  }
  return false;
}

}  // namespace

std::vector<Leftover> FindLeftovers(const std::string& job_dir) {
  std::vector<Leftover> found;
  const std::string id = job_dir.substr(job_dir.rfind('/') + 1);
  PosixFiles files;
  for (const std::string& attempt : NamesIn(job_dir)) {
    const std::string folder = StrCat(job_dir, "/", attempt);
    if (!attempt.starts_with("attempt-") || files.Exists(folder + std::string(kSent)) || AnyLives(folder))
      continue;
    Leftover left{id, folder, {}};
    bool claimed = false;  // a folder without a claim is of a job whose agent is on another node
    for (const std::string& name : NamesIn(folder)) {
      claimed = claimed || name.ends_with(".claim");
      if (IsKept(name)) left.names.push_back(StrCat(attempt, "/", name));
      if (!name.starts_with("node-")) continue;
      for (NodeFile& file : NodeFilesIn(job_dir, StrCat(attempt, "/", name)))
        left.names.push_back(std::move(file.name));
    }
    if (claimed) found.push_back(std::move(left));
  }
  return found;
}

std::vector<Leftover> FindLeftoversBeside(const std::string& job_dir, const std::string& store) {
  std::vector<Leftover> found;
  const std::string jobs = job_dir.substr(0, job_dir.rfind('/'));
  for (const std::string& id : NamesIn(jobs)) {
    const std::string other = StrCat(jobs, "/", id);
    if (other == job_dir || PosixFiles().Read(other + std::string(kVia)).value_or("") != store) continue;
    for (Leftover& left : FindLeftovers(other)) found.push_back(std::move(left));
  }
  return found;
}

bool IsShared(const std::string& attempt_folder) {
  const std::vector<std::string> names = NamesIn(attempt_folder);
  return std::count_if(names.begin(), names.end(),
                       [](const std::string& name) { return name.ends_with(".claim"); }) > 1;
}

void NoteStore(const std::string& job_dir, const std::string& store) {
  (void)PosixFiles().WriteAtomic(job_dir + std::string(kVia), store, false);
}

void MarkSent(const std::string& attempt_folder) {
  (void)PosixFiles().WriteAtomic(attempt_folder + std::string(kSent), "", false);
}

void RemoveSent(const Leftover& leftover) {
  if (!AnyLives(leftover.folder)) RemoveAttempt(leftover);
}

void RemoveAttempt(const Leftover& leftover) {
  PosixFiles files;
  (void)files.RemoveTree(leftover.folder);
  const std::string job = leftover.folder.substr(0, leftover.folder.rfind('/'));
  for (const std::string& name : NamesIn(job)) {
    if (name.starts_with("attempt-")) return;
  }
  // state/ may be wanted by the next attempt; it goes only when it is empty.
  (void)rmdir((job + "/state").c_str());
  if (files.Exists(job + "/state")) return;
  (void)files.RemoveTree(job);
}

}  // namespace overcap
