// SPDX-License-Identifier: Apache-2.0
// The seam between the engine and the processes that run jobs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "model/job_owner.h"
#include "sys/proc_table.h"

namespace overcap {

// Which agent to start; becomes `overcap agent ...` (docs/formats/job-folder.md).
struct AgentStart {
  std::string job_id;
  std::string job_dir;
  std::string store_dir;
  int attempt = 1;
  int slot = 0;
  std::vector<int> gpus;
  std::vector<int> cpus;
  std::vector<int> retry_tasks;
  JobOwner owner;     // told: it runs as this user, and the claim is made by the process that becomes it
  std::string area;   // of the owner (docs/formats/system-engine.md)
  std::string claim;  // the slot's claim, a file of the engine's
  int nodes = 1;      // an elastic job's agents
  // The limits of the engine's own record: the user can change the spec in the job's folder. 0: none.
  int64_t time_seconds = 0, memory_bytes = 0;
  // Jobs of told owners can open no other GPUs, where the kernel offers that. Not for elastic jobs, whose
  // agents divide their GPUs by index.
  bool private_gpus = false;
  std::vector<std::string> gpu_uuids;  // one for each of `gpus`; "": not known
};

// Something on the side in the folders of an owner.
struct SideWork {
  std::string folder;  // the store, or what is emptied
  JobOwner owner;      // not told: the engine's own user
  std::string area;
  bool itself = false;  // EmptyTrash() removes the folder too
};

// Which slot of which job an agent serves; what Watch() gives back.
struct AgentToken {
  uint64_t job_key = 0;
  int attempt = 0;
  int slot = 0;
  bool operator==(const AgentToken&) const = default;
};

class Agents {
 public:
  virtual ~Agents() = default;
  // Starts the agent in a session of its own, so that it outlives the engine. Does not wait for its claim.
  virtual Result<ProcessIdentity> Start(const AgentStart& start) = 0;
  virtual std::string CurrentBoot() const = 0;            // names this boot of the machine
  virtual std::string CurrentHost() const { return {}; }  // names the machine; "": there is only one
  virtual bool IsAlive(const ProcessIdentity& agent) const = 0;
  // For how long it has run at least, by a clock that cannot be set; time in which the machine slept does not
  // count.
  virtual int64_t RunningForUs(const ProcessIdentity& agent) const = 0;
  // From now on the token is reported once, by the caller's loop, when this process has ended.
  virtual Result<void> Watch(const ProcessIdentity& agent, const AgentToken& token) = 0;
  virtual void Signal(const ProcessIdentity& agent, int signal) = 0;  // fine when it is gone
  // Kills everything that still carries the mark of this slot after its agent is gone; returns how many
  // processes.
  struct SlotName {
    std::string job_id;
    int attempt = 0;
    int slot = 0;
    int64_t uid = -1;  // whose processes alone are killed; -1: anybody's
  };
  virtual int KillStrays(const SlotName& slot) = 0;
  // Whether the kernel has killed a process of this slot because of its memory limit. Ask before
  // KillStrays().
  virtual bool RanOutOfMemory(const SlotName& slot) const = 0;
  // Has, in the background, a copy of this code made for the attempt after this one. Only a matter of speed.
  virtual void PrepareSpare(const SideWork& store, const std::string& snapshot) = 0;
  // Removes, in the background, all that lies in this folder.
  virtual void EmptyTrash(const SideWork& trash) = 0;
};

}  // namespace overcap
