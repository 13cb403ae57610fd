// SPDX-License-Identifier: Apache-2.0
// How long runs take, learned from those that are over. Pure.
//
// What is learned is which part of its time limit a run used: of the same user, of the lab, of the partition,
// of everybody. A user with few runs is known little: with n of them the user's own runs are drawn from n
// times of n + kDoubt, else those of the lab in the same way, and so on; at the end of the line stands the
// limit. Jobs that name no limit are drawn in seconds, and cut off at that of their partition.
//
// Of the runs of the last days the short ones have ended and the long ones go on: those that go on are
// counted as longer than they are yet (Kaplan and Meier's estimate), else all runs would seem short.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/past_run.h"
#include "sched/forecast/start_times.h"

namespace overcap::forecast {

// A number that looks random and follows from all three (splitmix64).
uint64_t Mixed(uint64_t seed, uint64_t a, uint64_t b = 0);

// Where runs like one that is asked about are looked for.
struct RunKind {
  std::string_view user = {}, lab = {}, partition = {};
  int64_t limit_s = 0;      // 0: none
  int64_t ran_s = 0;        // it runs already for so long
  bool named_limit = true;  // no: the limit is its partition's, and tells nothing about it
};

// What one run may take: made once, drawn from many times.
class RunTime {
 public:
  // `chance`: any 64 bits. Seconds from its start to its end, more than it ran already; kNever: nobody knows.
  int64_t Draw(uint64_t chance) const;

 private:
  friend class RunTimes;
  static constexpr size_t kLevels = 4;
  struct Level {
    const float* runs = nullptr;   // ascending: parts of the limit, or seconds
    const float* until = nullptr;  // their weights, summed up
    uint32_t count = 0;
    float before = 0;   // the weight of shorter ones
    double unit_s = 1;  // of `runs`
    double weight() const { return until[count - 1] - before; }
  };
  std::array<Level, kLevels> levels_ = {};
  size_t used_ = 0;
  int64_t last_s_ = 0;   // where nothing is known
  int64_t after_s_ = 0;  // it takes longer than this
  int64_t most_s_ = kNever;
};

class RunTimes {
 public:
  static constexpr double kDoubt = 4;
  static constexpr size_t kMostOfOne = 400;  // the latest of a user count, as many as this

  explicit RunTimes(std::vector<PastRun> runs);

  size_t runs() const { return known_; }
  size_t RunsOf(std::string_view user) const;
  // Valid while this lives.
  RunTime Of(const RunKind& kind) const;

 private:
  // Runs, ascending, and their weights summed up.
  struct Sample {
    std::vector<std::pair<float, bool>> seen;  // how long; goes on
    std::vector<float> runs, until;
    void Weigh(float longest);
  };
  struct Group {
    Sample parts, seconds;
    size_t ended = 0;
  };
  void Add(const std::string& group, const PastRun& run);
  const Group* Find(char kind, std::string_view name) const;

  std::unordered_map<std::string, Group> groups_;
  size_t known_ = 0;
};

}  // namespace overcap::forecast
