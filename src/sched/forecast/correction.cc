// SPDX-License-Identifier: Apache-2.0
#include "sched/forecast/correction.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace overcap::forecast {
namespace {

constexpr double kMinuteS = 60;  // waits are told in minutes: what is shorter says nothing about ratios
constexpr double kDoubt = 8;     // as many promises count half
constexpr double kMost = 50;
constexpr double kEven = 1e-9;  // sums of parts are not exact

double Ratio(int64_t waited_s, int64_t foreseen_s) {
  return (static_cast<double>(waited_s) + kMinuteS) / (static_cast<double>(foreseen_s) + kMinuteS);
}

// The ratio below which `part` of all stay; one that still waits counts as longer than yet (Kaplan, Meier).
double Quantile(std::vector<std::pair<double, bool>> ratios, double part) {
  std::sort(ratios.begin(), ratios.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  double longer = 1;
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (!ratios[i].second) continue;
    longer *= 1 - 1 / static_cast<double>(ratios.size() - i);
    if (1 - longer >= part - kEven) return ratios[i].first;
  }
  return ratios.back().first;
}

double Shrunk(double factor, size_t promises) {
  const double trust = static_cast<double>(promises) / (static_cast<double>(promises) + kDoubt);
  return std::clamp(std::pow(factor, trust), 1 / kMost, kMost);
}

int64_t Stretched(int64_t at_s, int64_t now_s, double factor) {
  if (at_s >= kNever) return kNever;
  const double wait_s = (static_cast<double>(at_s - now_s) + kMinuteS) * factor - kMinuteS;
  return now_s + std::max<int64_t>(0, std::lround(wait_s));
}

}  // namespace

Correction CorrectionFrom(const std::vector<PastPromise>& past) {
  if (past.size() < static_cast<size_t>(kFewestPromises)) return {};
  std::vector<std::pair<double, bool>> p50, p90;
  for (const PastPromise& one : past) {
    p50.emplace_back(Ratio(one.waited_s, one.p50_s), one.started);
    p90.emplace_back(Ratio(one.waited_s, one.p90_s), one.started);
  }
  return {Shrunk(Quantile(std::move(p50), 0.5), past.size()),
          Shrunk(Quantile(std::move(p90), 0.9), past.size()), static_cast<int>(past.size())};
}

StartTimes Corrected(const StartTimes& foreseen, int64_t now_s, const Correction& by) {
  if (by.promises == 0) return foreseen;
  StartTimes made{Stretched(foreseen.p50_s, now_s, by.p50), Stretched(foreseen.p90_s, now_s, by.p90)};
  made.p50_s = std::min(made.p50_s, made.p90_s);
  return made;
}

}  // namespace overcap::forecast
