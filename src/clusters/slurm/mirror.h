// SPDX-License-Identifier: Apache-2.0
// The one way in which Overcap reads a Slurm controller: the last answer, shared by all who look, so that
// many cost the controller no more than one. Rules and files: docs/formats/slurm-mirror.md.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/result.h"
#include "clusters/slurm/mirror_folder.h"
#include "clusters/slurm/mirror_record.h"
#include "clusters/slurm/tool_call.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {

enum class MirrorKind { kQueue, kNodes, kPartitions, kAssociations, kQos, kUsers, kConfig, kHistory };

// How one kind is asked for.
struct MirrorSource {
  // `mark` is a random word for this call alone. `now_us` is for questions with a time in them; the columns
  // must not depend on it, and the time is best rounded: others are given the same answer.
  std::function<std::vector<std::string>(std::string_view mark, int64_t now_us)> argv;
  // Whether the program's output is whole and can be read. May be empty.
  std::function<Result<void>(std::string_view text, std::string_view mark)> check;
};

struct MirrorOptions {
  // Which controller: all that decides it (SLURM_CONF, the cluster's name, where the programs lie).
  std::string cluster;
  std::string shared_folder;             // of an administrator; empty: none
  std::vector<uid_t> trusted;            // who may own it besides root and this user
  std::vector<std::string> own_folders;  // the first that can be used is; see OwnMirrorFolders()
  int64_t min_interval_us = 5'000'000;
  int64_t call_timeout_us = 15'000'000;
};

// Where a user's own mirrors stand. `root`: OvercapRoot().
std::vector<std::string> OwnMirrorFolders(uid_t user, const std::string& root);

struct MirrorSeams {
  const Clock* clock;
  Random* random;
  // Must come back within `timeout` or soon after, with kUnavailable when the program did not end.
  std::function<Result<ToolAnswer>(const std::vector<std::string>& argv, std::chrono::milliseconds timeout)>
      run;
  std::function<void(int64_t us)> pause;  // sleeps
  // What a program's failure means, for people. Empty: its own first line.
  std::function<Error(const std::vector<std::string>& argv, const ToolAnswer& answer)> explain = {};
};

struct MirrorText {
  std::shared_ptr<const std::string> text;  // what the program printed; the same object while it is the same
  std::string mark;                         // with which it was asked for; also its identity
  int64_t taken_us = 0;                     // when it was asked for: what happened later may be missing in it
  std::optional<int64_t> age_us;            // not known after the clock was set back
  std::optional<Error> error;  // the controller could not be asked: this is the last that is known
};

// Not thread safe; any number of processes.
class Mirror {
 public:
  Mirror(MirrorSeams seams, MirrorOptions options, std::map<MirrorKind, MirrorSource> sources);

  // An answer that is not older than `max_age_us` or the shortest interval, whichever is longer; the
  // controller is asked when there is none, unless somebody was refused it a moment ago. When it cannot be
  // had, the last known one with the error. Fails only when nothing is known: never an empty text for a
  // failure. Takes at most three times the call's timeout and some seconds.
  Result<MirrorText> Read(MirrorKind kind, int64_t max_age_us);

  // The last known answer, however old; asks nobody. Empty: none is known.
  std::optional<MirrorText> Peek(MirrorKind kind);

  // What kept the last Read() from sharing its answer, for `cluster check`.
  const std::vector<Error>& troubles() const { return troubles_; }

 private:
  // What this process knows of one kind.
  struct Known {
    std::string name;  // of its files, without the suffix
    std::string of;
    std::optional<MirrorHeader> header;
    std::shared_ptr<const std::string> text;
    std::optional<MirrorFailure> failure;
    std::optional<int64_t> asked_us;  // monotonic, by this process
    std::string damaged_mark;         // of a file that does not fit its header: not read again
  };

  std::vector<MirrorFolder> OpenFolders();
  void Look(const std::vector<MirrorFolder>& folders, Known* known) const;
  void LookAtText(const MirrorFolder& folder, Known* known) const;
  bool Serves(const Known& known, int64_t max_age_us) const;
  Result<MirrorText> Give(const Known& known, std::optional<Error> trouble = {}) const;

  // Until this process may ask (with the lock in *lock, if there can be one) or needs not any more.
  enum class Turn { kAsk, kServed, kGivenUp };
  Turn WaitForTurn(const std::vector<MirrorFolder>& folders, const MirrorFolder* home, int64_t max_age_us,
                   Known* known, std::optional<MirrorLock>* lock);
  void Ask(const MirrorSource& source, const std::vector<MirrorFolder>& folders, Known* known);
  Result<std::string> Call(const MirrorSource& source, const std::string& mark, int64_t now_us) const;
  void Keep(const std::vector<MirrorFolder>& folders, const Known& known);
  void KeepFailure(const std::vector<MirrorFolder>& folders, const Known& known);

  MirrorSeams seams_;
  MirrorOptions options_;
  std::map<MirrorKind, MirrorSource> sources_;
  std::map<MirrorKind, Known> known_;
  std::vector<Error> troubles_;
};

}  // namespace overcap
