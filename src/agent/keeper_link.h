// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "sys/clock.h"
#include "sys/fd.h"

namespace overcap {

// What keepers have said (docs/formats/mounts.md), of one node or of several.
struct KeeperWords {
  size_t ready = 0;
  std::set<std::string> released;  // nodes
  std::string place;               // the node's folder of the first who said it
  std::string failure;             // of the first who failed
  std::vector<std::string> notes, unsaved;

  void Take(const std::string& line);
};

// The process by which keepers are reached: a keeper itself, or srun with those of other nodes. They take all
// away when this object is gone.
class KeeperLink {
 public:
  struct Program {
    std::vector<std::string> argv, env;
    std::string log;                 // what it says of itself
    std::vector<std::string> nodes;  // of keepers that it starts; none: it is the keeper itself
  };
  static Result<KeeperLink> Start(const Program& program);

  enum class Heard { kAll, kFailed, kStopped, kGone };
  // Until all of them are ready; kStopped when `stop` says so first.
  Heard AwaitReady(const Clock& clock, const std::function<bool()>& stop);
  // Tells them to take all away, and hears them until they have. `most_us`: how long nothing may be done.
  // Nodes that give no sign of life are not waited for: kGone, and `released` says which have.
  void Release() { input_.Reset(); }
  Heard AwaitReleased(const Clock& clock, int64_t most_us);

  static constexpr int64_t kSilentUs = 600'000'000;  // who says nothing for so long is given up
  static constexpr int64_t kLostUs = 30'000'000;     // a node whose keeper does not beat for so long is lost
  KeeperWords& words() { return words_; }
  const KeeperWords& words() const { return words_; }

 private:
  KeeperLink(Fd input, Fd output, Fd pidfd, std::vector<std::string> nodes)
      : input_(std::move(input)),
        output_(std::move(output)),
        pidfd_(std::move(pidfd)),
        nodes_(std::move(nodes)) {}
  Heard Await(const Clock& clock, int64_t most_us, const std::function<bool()>& done,
              const std::function<bool()>& stop);
  size_t Keepers() const { return nodes_.empty() ? 1 : nodes_.size(); }
  bool AllLostOrReleased(int64_t now_us) const;
  bool ReadMore();
  bool TakeLines(int64_t now_us);
  void Kill() const;

  Fd input_, output_, pidfd_;
  std::vector<std::string> nodes_;
  std::map<std::string, int64_t> beat_us_;  // when nodes gave a sign of life
  std::string heard_;
  KeeperWords words_;
};

}  // namespace overcap
