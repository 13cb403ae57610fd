// SPDX-License-Identifier: Apache-2.0
// What `overcap daemon recover` reads and writes. mend_journal.h has what it decides.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/mend_journal.h"
#include "sys/files.h"

namespace overcap {

// The job folders below a root: of its own user, or of all users of a machine (`system`). A folder in a
// user's area can only be about a job of that user.
class JobTraces {
 public:
  // `owners`: uids by job id, from the journal. `boot_id`: of this boot if the last engine ran in it, else
  // "".
  JobTraces(const Files& files, std::string root, bool system, std::map<std::string, int64_t> owners,
            std::string boot_id);

  std::vector<std::string> Ids() const;  // that have a folder
  std::optional<JobTrace> Read(const std::string& id);
  const std::vector<std::string>& notes() const { return notes_; }  // what was left out

 private:
  std::string FolderOf(const std::string& id) const;
  std::optional<JobSpec> ReadSpec(const std::string& id, const std::string& folder);
  std::vector<SlotTrace> ReadSlots(const std::string& id, const std::string& folder) const;
  SlotTrace ReadSlot(const std::string& claim, const std::string& report, int attempt, int slot) const;

  const Files& files_;
  std::string root_;
  bool system_;
  std::string boot_id_;
  std::map<std::string, int64_t> owners_;
  std::vector<std::string> notes_;
};

// Mends the journal of `root` and reports what it did. Keeps the old one under another name; the new one
// takes its place after it has been read back as the engine reads it. The caller holds the lock.
Result<std::string> MendRoot(Files& files, const std::string& root, bool system, const std::string& boot_id,
                             int64_t now_us);

}  // namespace overcap
