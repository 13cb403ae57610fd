// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_plan.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "model/host_list.h"

namespace overcap {
namespace {

using Hosts = std::vector<AllocatedHost>;

// Every host with its GPUs known.
Hosts WithKnownGpus(Hosts hosts) {
  const auto known = std::ranges::find_if(hosts, [](const AllocatedHost& host) { return host.gpus >= 0; });
  const int gpus = known == hosts.end() ? 0 : known->gpus;
  for (AllocatedHost& host : hosts) host.gpus = host.gpus >= 0 ? host.gpus : gpus;
  return hosts;
}

// Ranks that a host takes by itself; 0: nothing limits it.
int Capacity(const AllocatedHost& host) {
  return host.slots > 0 ? host.slots : host.gpus;
}

Result<void> CheckNumbers(const PlanRequest& request) {
  const auto check = [](const char* flag, int value) -> Result<void> {
    if (value < 0) return Fail(ErrorCode::kUsage, StrCat(flag, " must be at least 1, not ", value));
    if (value > kMaxRanks)
      return Fail(ErrorCode::kUsage, StrCat(flag, " must be at most ", kMaxRanks, ", not ", value));
    return {};
  };
  OC_TRY_VOID(check("-n", request.ranks));
  OC_TRY_VOID(check("--ppn", request.per_node));
  OC_TRY_VOID(check("--nnodes", request.nodes));
  return check("--spare-nodes", request.spare_nodes);
}

// How many hosts may get ranks.
Result<size_t> UsableHosts(size_t hosts, const PlanRequest& request) {
  const auto spares = static_cast<size_t>(request.spare_nodes);
  if (spares >= hosts) {
    return Fail(ErrorCode::kUsage, StrCat("--spare-nodes ", spares, " leaves no host for the ranks: there ",
                                          hosts == 1 ? "is 1 host" : StrCat("are ", hosts, " hosts")));
  }
  const size_t usable = hosts - spares;
  const auto nodes = static_cast<size_t>(request.nodes);
  if (nodes == 0) return usable;
  if (nodes <= usable) return nodes;
  const std::string but = spares > 0 ? StrCat(" beside ", CountOf(request.spare_nodes, "spare")) : "";
  return Fail(ErrorCode::kUsage, StrCat("--nnodes ", nodes, ": there ", usable == 1 ? "is " : "are ",
                                        CountOf(static_cast<int64_t>(usable), "host"), but));
}

// "1 host has 4 GPUs", "2 hosts have 6 slots", "2 hosts take 6".
std::string WhatTheyHave(const Hosts& hosts, int64_t capacity) {
  const auto slots = std::ranges::count_if(hosts, [](const AllocatedHost& host) { return host.slots > 0; });
  const std::string who = CountOf(static_cast<int64_t>(hosts.size()), "host");
  const char* has = hosts.size() == 1 ? " has " : " have ";
  if (slots == 0) return StrCat(who, has, CountOf(capacity, "GPU"));
  if (static_cast<size_t>(slots) == hosts.size()) return StrCat(who, has, CountOf(capacity, "slot"));
  return StrCat(who, hosts.size() == 1 ? " takes " : " take ", capacity);
}

tl::unexpected<Error> DoNotFit(const Hosts& hosts, int ranks, int64_t capacity) {
  const int hosts_count = static_cast<int>(hosts.size());
  const bool slots = std::ranges::any_of(hosts, [](const AllocatedHost& host) { return host.slots > 0; });
  return Fail(ErrorCode::kUsage,
              StrCat(CountOf(ranks, "rank"),
                     ranks == 1 ? " does not fit: " : " do not fit: ", WhatTheyHave(hosts, capacity)),
              StrCat("--ppn ", (ranks + hosts_count - 1) / hosts_count, " lets ranks share ",
                     slots ? "slots" : "GPUs"));
}

// One rank to each host in turn, as long as it takes any.
Result<std::vector<int>> Spread(const Hosts& hosts, int ranks) {
  int64_t capacity = 0;
  for (const AllocatedHost& host : hosts) capacity += Capacity(host) == 0 ? ranks : Capacity(host);
  if (capacity < ranks) return DoNotFit(hosts, ranks, capacity);
  std::vector<int> counts(hosts.size(), 0);
  for (int left = ranks; left > 0;) {
    for (size_t i = 0; i < hosts.size() && left > 0; ++i) {
      if (Capacity(hosts[i]) != 0 && counts[i] == Capacity(hosts[i])) continue;
      ++counts[i];
      --left;
    }
  }
  return counts;
}

// `per_node` ranks on each host until all have a place.
Result<std::vector<int>> Fill(size_t hosts, int ranks, int per_node) {
  const int64_t room = static_cast<int64_t>(hosts) * per_node;
  if (ranks > room) {
    return Fail(ErrorCode::kUsage, StrCat(CountOf(ranks, "rank"), " do not fit: --ppn ", per_node, " on ",
                                          CountOf(static_cast<int64_t>(hosts), "host"), " is ", room));
  }
  std::vector<int> counts(hosts, 0);
  for (size_t i = 0; i < hosts && ranks > 0; ++i) {
    counts[i] = std::min(ranks, per_node);
    ranks -= counts[i];
  }
  return counts;
}

Result<std::vector<int>> CountRanks(const Hosts& hosts, const PlanRequest& request) {
  if (request.ranks > 0 && request.per_node > 0) return Fill(hosts.size(), request.ranks, request.per_node);
  if (request.ranks > 0) return Spread(hosts, request.ranks);
  std::vector<int> counts;
  for (const AllocatedHost& host : hosts)
    counts.push_back(request.per_node > 0 ? request.per_node : std::max(1, Capacity(host)));
  return counts;
}

}  // namespace

Result<RankPlan> PlanRanks(const Hosts& allocated, const PlanRequest& request) {
  if (allocated.empty()) return Fail(ErrorCode::kUsage, "there is no host to run ranks on");
  OC_TRY_VOID(CheckNumbers(request));
  const Hosts hosts = WithKnownGpus(allocated);
  OC_TRY(usable, UsableHosts(hosts.size(), request));
  const Hosts used(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(usable));
  OC_TRY(counts, CountRanks(used, request));
  if (std::accumulate(counts.begin(), counts.end(), int64_t{0}) > kMaxRanks)
    return Fail(ErrorCode::kUsage, StrCat("a launch has at most ", kMaxRanks, " ranks"));
  RankPlan plan;
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (i >= used.size() || counts[i] == 0) {
      plan.spares.push_back(hosts[i]);
      continue;
    }
    plan.hosts.push_back({hosts[i].name, plan.world_size, counts[i], hosts[i].gpus});
    plan.world_size += counts[i];
  }
  if (request.nodes > static_cast<int>(plan.hosts.size())) {
    return Fail(ErrorCode::kUsage,
                StrCat("--nnodes ", request.nodes, ": ", CountOf(plan.world_size, "rank"), " would leave ",
                       CountOf(request.nodes - static_cast<int>(plan.hosts.size()), "host"), " empty"));
  }
  return plan;
}

bool RankPlan::Even() const {
  return std::ranges::all_of(hosts, [&](const PlannedHost& host) { return host.ranks == hosts[0].ranks; });
}

int RankPlan::MostPerHost() const {
  int most = 0;
  for (const PlannedHost& host : hosts) most = std::max(most, host.ranks);
  return most;
}

int RankPlan::HostOf(int rank) const {
  const auto after = std::ranges::upper_bound(hosts, rank, {}, &PlannedHost::first_rank);
  return static_cast<int>(after - hosts.begin()) - 1;
}

std::string RanksPerHostText(const RankPlan& plan) {
  std::string text;
  for (size_t i = 0; i < plan.hosts.size();) {
    size_t end = i + 1;
    while (end < plan.hosts.size() && plan.hosts[end].ranks == plan.hosts[i].ranks) ++end;
    if (i > 0) text += ',';
    text += StrCat(plan.hosts[i].ranks);
    if (end - i > 1) text += StrCat("x", end - i);
    i = end;
  }
  return text;
}

Result<std::vector<int>> ParseRanksPerHost(std::string_view text) {
  const auto bad = [&] {
    return Fail(ErrorCode::kUsage,
                StrCat("'", ToUtf8(text), "' does not say how many ranks are on each host"));
  };
  std::vector<int> counts;
  long long sum = 0;
  for (const std::string& part : Split(text, ',')) {
    const size_t x = part.find('x');
    const auto ranks = ParseInt(std::string_view(part).substr(0, x));
    const auto hosts =
        x == std::string::npos ? std::optional<long long>(1) : ParseInt(std::string_view(part).substr(x + 1));
    if (!ranks || !hosts || *ranks < 1 || *hosts < 1 || *ranks > kMaxRanks || *hosts > kMaxRanks)
      return bad();
    sum += *ranks * *hosts;
    if (sum > kMaxRanks) return bad();
    counts.insert(counts.end(), static_cast<size_t>(*hosts), static_cast<int>(*ranks));
  }
  return counts;
}

}  // namespace overcap
