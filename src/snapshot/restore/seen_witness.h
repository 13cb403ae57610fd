// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <sys/stat.h>

#include "snapshot/restore/content_prover.h"
#include "snapshot/restore/survey.h"

namespace overcap {

// Says whether an entry of a folder is still what the cache says of it: by its stamp, and where that cannot
// tell, by reading it. Never says so of one that it cannot be sure of. One per thread.
class SeenWitness {
 public:
  enum class Word {
    kNo,      // it is not, or it cannot be told
    kStamp,   // the stamp proves it; a folder has the names that it had
    kLooked,  // all that it has was read; of a folder all but its names
  };

  // Of a request with `since_seen`, which outlives it.
  explicit SeenWitness(const SurveyRequest& request) : request_(request), prover_(*request.get) {}

  // `status` is that of `name` in the folder `fd` (O_PATH will do). The entry gets the stamp that was found.
  Word Confirm(int fd, const char* name, const struct statx& status, SeenEntry* seen);
  // The same of an entry with all that is in it; `path` is where it is in the target.
  bool ConfirmAll(int fd, SeenEntry seen, const std::string& path, int depth = 0);

 private:
  static constexpr int kDeepest = 200;  // folders that are open at once

  bool ReadsAsSeen(int fd, const char* name, const SeenStamp& stamp, const SeenEntry& seen);
  bool HasXattrs(int fd, const char* name, const SeenEntry& seen) const;
  bool ConfirmFolder(int fd, const SeenEntry& seen, const std::string& path, bool list, int depth);

  const SurveyRequest& request_;
  ContentProver prover_;
};

}  // namespace overcap
