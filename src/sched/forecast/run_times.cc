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

// A run that goes on hands its weight to all longer ones. What the longest of them has left is put on
// `longest`, or where that is 0 on twice its length.
void RunTimes::Sample::Weigh(float longest) {
  std::sort(seen.begin(), seen.end());
  float weight = 1, sum = 0;
  for (size_t i = 0; i < seen.size(); ++i) {
    const auto left = static_cast<float>(seen.size() - i - 1);
    const bool goes_on = seen[i].second;
    if (goes_on && left > 0) {
      weight *= 1 + 1 / left;
      continue;
    }
    sum += weight;
    runs.push_back(!goes_on ? seen[i].first : longest > 0 ? longest : 2 * seen[i].first);
    until.push_back(sum);
  }
  seen = {};
}

RunTimes::RunTimes(std::vector<PastRun> runs) {
  std::stable_sort(runs.begin(), runs.end(),
                   [](const PastRun& a, const PastRun& b) { return a.ended_us > b.ended_us; });
  std::unordered_map<std::string_view, size_t> of_user;
  for (const PastRun& run : runs) {
    if (run.run_s <= 0 || (!run.goes_on && ++of_user[run.user] > kMostOfOne)) continue;
    known_ += run.goes_on ? 0 : 1;
    Add(StrCat('u', run.user), run);
    if (!run.lab.empty()) Add(StrCat('l', run.lab), run);
    if (!run.partition.empty()) Add(StrCat('p', run.partition), run);
    Add("a", run);
  }
  for (auto& [name, group] : groups_) group.parts.Weigh(1), group.seconds.Weigh(0);
}

void RunTimes::Add(const std::string& name, const PastRun& run) {
  Group& group = groups_[name];
  group.ended += run.goes_on ? 0 : 1;
  group.seconds.seen.emplace_back(static_cast<float>(run.run_s), run.goes_on);
  if (run.limit_s > 0)
    group.parts.seen.emplace_back(
        std::min(1.0F, static_cast<float>(run.run_s) / static_cast<float>(run.limit_s)), run.goes_on);
}

const RunTimes::Group* RunTimes::Find(char kind, std::string_view name) const {
  const auto found = groups_.find(StrCat(kind, name));
  return found == groups_.end() || found->second.ended == 0 ? nullptr : &found->second;
}

size_t RunTimes::RunsOf(std::string_view user) const {
  const Group* group = Find('u', user);
  return group == nullptr ? 0 : group->ended;
}

RunTime RunTimes::Of(const RunKind& kind) const {
  RunTime time;
  const bool limited = kind.limit_s > 0, by_limit = limited && kind.named_limit;
  time.after_s_ = kind.ran_s;
  time.most_s_ = limited ? std::max(kind.limit_s, kind.ran_s + 1) : kNever;
  time.last_s_ = time.most_s_;
  // Several partitions: the first that is known stands for all.
  std::string_view partition = kind.partition.substr(0, kind.partition.find(','));
  float longest = 0;
  for (const Group* group : {Find('u', kind.user), kind.lab.empty() ? nullptr : Find('l', kind.lab),
                             Find('p', partition), Find('a', "")}) {
    if (group == nullptr) continue;
    const Sample& sample = by_limit ? group->parts : group->seconds;
    const double unit_s = by_limit ? static_cast<double>(kind.limit_s) : 1;
    const auto above = static_cast<float>(static_cast<double>(kind.ran_s) / unit_s);
    if (!sample.runs.empty()) longest = std::max(longest, sample.runs.back());
    const auto from = static_cast<size_t>(std::upper_bound(sample.runs.begin(), sample.runs.end(), above) -
                                          sample.runs.begin());
    if (from == sample.runs.size()) continue;
    time.levels_[time.used_++] = {&sample.runs[from], &sample.until[from],
                                  static_cast<uint32_t>(sample.runs.size() - from),
                                  from == 0 ? 0 : sample.until[from - 1], unit_s};
  }
  // Without a limit: twice as long as any, or as it ran so far.
  if (!limited && longest > 0) time.last_s_ = 2 * std::max(static_cast<int64_t>(longest), kind.ran_s);
  return time;
}

int64_t RunTime::Draw(uint64_t chance) const {
  for (size_t i = 0; i < used_; ++i) {
    const Level& level = levels_[i];
    const double doubt = i + 1 == used_ ? 1 : RunTimes::kDoubt;
    const double of = Part(chance) * (level.weight() + doubt);
    chance = Next(&chance);
    if (of >= level.weight()) continue;
    const float* const end = level.until + level.count;
    const float* const found = std::upper_bound(level.until, end, level.before + static_cast<float>(of));
    const double drawn = level.runs[found == end ? level.count - 1 : found - level.until] * level.unit_s;
    return std::clamp(static_cast<int64_t>(std::lround(drawn)), after_s_ + 1, most_s_);
  }
  return last_s_;
}

}  // namespace overcap::forecast
