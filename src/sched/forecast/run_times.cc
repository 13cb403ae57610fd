// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/run_times.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace overcap::forecast {
namespace {

// Of 64 bits that look random the next ones.
uint64_t Next(uint64_t* state) {
  *state = Mixed(*state, 1);
  return *state;
}

double Part(uint64_t bits) {
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

uint64_t Mixed(uint64_t seed, uint64_t a, uint64_t b) {
  uint64_t x = seed + a * 0x9e3779b97f4a7c15 + b * 0xd1b54a32d192ed03 + 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

RunTimes::RunTimes(std::vector<PastRun> runs) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const PastRun& a, const PastRun& b) { return a.ended_us > b.ended_us; });
  std::unordered_map<std::string_view, size_t> of_user;
  for (const PastRun& run : runs) {
    if (run.run_s <= 0 || ++of_user[run.user] > kMostOfOne) continue;
    ++known_;
    Add(StrCat('u', run.user), run);
    if (!run.lab.empty()) Add(StrCat('l', run.lab), run);
    if (!run.partition.empty()) Add(StrCat('p', run.partition), run);
    Add("a", run);
  }
  for (auto& [name, group] : groups_) {
    std::sort(group.parts.begin(), group.parts.end());
    std::sort(group.seconds.begin(), group.seconds.end());
  }
}

void RunTimes::Add(const std::string& name, const PastRun& run) {
  Group& group = groups_[name];
  group.seconds.push_back(static_cast<float>(run.run_s));
  if (run.limit_s > 0)
    group.parts.push_back(std::min(1.0F, static_cast<float>(run.run_s) / static_cast<float>(run.limit_s)));
}

const RunTimes::Group* RunTimes::Find(char kind, std::string_view name) const {
  const auto found = groups_.find(StrCat(kind, name));
  return found == groups_.end() ? nullptr : &found->second;
}

size_t RunTimes::RunsOf(std::string_view user) const {
  const Group* group = Find('u', user);
  return group == nullptr ? 0 : group->seconds.size();
}

RunTime RunTimes::Of(const RunKind& kind) const {
  RunTime time;
  const bool limited = kind.limit_s > 0;
  time.unit_s_ = limited ? static_cast<double>(kind.limit_s) : 1;
  time.after_s_ = kind.ran_s;
  time.most_s_ = limited ? std::max(kind.limit_s, kind.ran_s + 1) : kNever;
  time.last_s_ = time.most_s_;
  const auto above = static_cast<float>(static_cast<double>(kind.ran_s) / time.unit_s_);
  // Several partitions: the first that is known stands for all.
  std::string_view partition = kind.partition.substr(0, kind.partition.find(','));
  float longest = 0;
  for (const Group* group : {Find('u', kind.user), kind.lab.empty() ? nullptr : Find('l', kind.lab),
                             Find('p', partition), Find('a', "")}) {
    if (group == nullptr) continue;
    const std::vector<float>& runs = limited ? group->parts : group->seconds;
    if (!runs.empty()) longest = std::max(longest, runs.back());
    const auto from = std::upper_bound(runs.begin(), runs.end(), above);
    if (from == runs.end()) continue;
    time.levels_[time.used_++] = {&*from, static_cast<uint32_t>(runs.end() - from)};
  }
  // Without a limit: twice as long as any, or as it ran so far.
  if (!limited && longest > 0) time.last_s_ = 2 * std::max(static_cast<int64_t>(longest), kind.ran_s);
  return time;
}

int64_t RunTime::Draw(uint64_t chance) const {
  for (size_t i = 0; i < used_; ++i) {
    const Level& level = levels_[i];
    const double doubt = i + 1 == used_ ? 1 : RunTimes::kDoubt;
    const double of = Part(chance) * (level.count + doubt);
    chance = Next(&chance);
    if (of >= level.count) continue;
    const double drawn = level.runs[static_cast<uint32_t>(of)] * unit_s_;
    return std::clamp(static_cast<int64_t>(std::lround(drawn)), after_s_ + 1, most_s_);
  }
  return last_s_;
}

}  // namespace overcap::forecast
