// SPDX-License-Identifier: Apache-2.0
#include "sched/pooled/victims.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace overcap::pooled {
namespace {

constexpr int64_t kMostExact = 4096;  // missing GPUs; above that sizes decide

bool Covers(const Amounts& missing, const std::vector<Candidate>& candidates,
            const std::vector<size_t>& chosen) {
  Amounts left = missing;
  for (const size_t i : chosen) {
    for (size_t unit = 0; unit < left.size(); ++unit) left[unit] -= candidates[i].gives[unit];
  }
  return std::all_of(left.begin(), left.end(), [](int64_t amount) { return amount <= 0; });
}

// Takes out who is not needed, those that would lose most first.
void Prune(const Amounts& missing, const std::vector<Candidate>& candidates, std::vector<size_t>* chosen) {
  std::vector<size_t> order = *chosen;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return candidates[a].loss > candidates[b].loss; });
  for (const size_t one : order) {
    std::vector<size_t> without;
    std::copy_if(chosen->begin(), chosen->end(), std::back_inserter(without),
                 [&](size_t i) { return i != one; });
    if (Covers(missing, candidates, without)) *chosen = std::move(without);
  }
}

// Least (count, loss) to give at least `gpus`: a knapsack over the GPUs.
std::vector<size_t> FewestForGpus(int64_t gpus, const std::vector<Candidate>& candidates) {
  struct Cell {
    int count = std::numeric_limits<int>::max() / 2;
    int64_t loss = 0;
  };
  const auto width = static_cast<size_t>(gpus) + 1;
  std::vector<Cell> best(width);  // to give at least so many
  best[0] = {0, 0};
  std::vector<std::vector<char>> taken(candidates.size(), std::vector<char>(width, 0));
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].gives[0] <= 0) continue;
    const auto gives = static_cast<size_t>(candidates[i].gives[0]);
    for (size_t need = width - 1; need > 0; --need) {
      const Cell& before = best[need > gives ? need - gives : 0];
      const Cell with{before.count + 1, before.loss + candidates[i].loss};
      if (std::tie(with.count, with.loss) >= std::tie(best[need].count, best[need].loss)) continue;
      best[need] = with;
      taken[i][need] = 1;
    }
  }
  std::vector<size_t> chosen;
  size_t need = width - 1;
  for (size_t i = candidates.size(); i-- > 0 && need > 0;) {
    if (!taken[i][need]) continue;
    chosen.push_back(i);
    const auto gives = static_cast<size_t>(candidates[i].gives[0]);
    need = need > gives ? need - gives : 0;
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

// Largest first, by the part of what is still missing that each gives.
std::vector<size_t> Greedy(const Amounts& missing, const std::vector<Candidate>& candidates) {
  std::vector<size_t> left(candidates.size()), chosen;
  std::iota(left.begin(), left.end(), 0);
  Amounts open = missing;
  while (!left.empty() && std::any_of(open.begin(), open.end(), [](int64_t amount) { return amount > 0; })) {
    double best_part = 0;
    size_t best = 0;
    for (size_t at = 0; at < left.size(); ++at) {
      double part = 0;
      for (size_t unit = 0; unit < open.size(); ++unit) {
        if (open[unit] <= 0) continue;
        part += std::min(
            1.0, static_cast<double>(candidates[left[at]].gives[unit]) / static_cast<double>(open[unit]));
      }
      if (part > best_part ||
          (part == best_part && part > 0 && candidates[left[at]].loss < candidates[left[best]].loss)) {
        best_part = part;
        best = at;
      }
    }
    if (best_part == 0) break;
    for (size_t unit = 0; unit < open.size(); ++unit) open[unit] -= candidates[left[best]].gives[unit];
    chosen.push_back(left[best]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// The one that is enough alone and loses the least.
const Candidate* BestAlone(const Amounts& missing, const std::vector<Candidate>& candidates) {
  const Candidate* best = nullptr;
  for (const Candidate& one : candidates) {
    const bool enough =
        one.gives[0] >= missing[0] && one.gives[1] >= missing[1] && one.gives[2] >= missing[2];
    if (enough && (best == nullptr || one.loss < best->loss)) best = &one;
  }
  return best;
}

}  // namespace

std::optional<Choice> ChooseVictims(const Amounts& missing, const std::vector<Candidate>& candidates,
                                    size_t most) {
  if (const Candidate* one = BestAlone(missing, candidates)) return Choice{{one->job}, one->loss};
  if (most <= 1) return std::nullopt;
  std::vector<size_t> all(candidates.size());
  std::iota(all.begin(), all.end(), 0);
  if (!Covers(missing, candidates, all)) return std::nullopt;
  std::vector<size_t> chosen;
  if (missing[0] > 0 && missing[0] <= kMostExact) chosen = FewestForGpus(missing[0], candidates);
  if (!Covers(missing, candidates, chosen)) chosen = Greedy(missing, candidates);
  Prune(missing, candidates, &chosen);
  Choice choice;
  for (const size_t i : chosen) {
    choice.jobs.push_back(candidates[i].job);
    choice.loss += candidates[i].loss;
  }
  return choice;
}

}  // namespace overcap::pooled
