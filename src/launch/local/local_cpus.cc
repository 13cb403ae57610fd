// SPDX-License-Identifier: Apache-2.0
#include "launch/local/local_cpus.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "base/text.h"

namespace overcap {
namespace {

using Sets = std::vector<std::vector<int>>;
constexpr int kMaxCpu = 65'535;
constexpr size_t kMaxNumaNodes = 1'024;

tl::unexpected<Error> Bad(std::string_view spec, std::string_view why) {
  return Fail(ErrorCode::kUsage, StrCat("cpu-bind ", Quoted(spec, 200), ": ", why),
              "known here are none, cores, threads, numa, depth, depth:N and list:0-3:4-7");
}

// "0-3,8", as the system and people write it; nullopt when it is something else or empty.
std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  std::vector<int> cpus;
  for (const std::string& part : Split(Trim(text), ',')) {
    const size_t dash = part.find('-');
    const auto first = ParseInt(std::string_view(part).substr(0, dash));
    const auto last = dash == part.npos ? first : ParseInt(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last > kMaxCpu) return std::nullopt;
    for (long long cpu = *first; cpu <= *last; ++cpu) cpus.push_back(static_cast<int>(cpu));
    if (cpus.size() > kMaxCpu + 1) return std::nullopt;
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::optional<std::vector<int>> ReadCpuList(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return ParseCpuList(line);
}

std::vector<int> Flatten(Sets::const_iterator begin, Sets::const_iterator end) {
  std::vector<int> all;
  for (; begin != end; ++begin) all.insert(all.end(), begin->begin(), begin->end());
  return all;
}

// `share` of the units to each rank; 0: as many as there are for everybody.
Result<Sets> Deal(std::string_view spec, int ranks, const Sets& units, size_t share, std::string_view noun) {
  const auto count = static_cast<size_t>(ranks);
  if (share == 0) share = std::max<size_t>(units.size() / count, 1);
  if (share > units.size() / count) {
    return Bad(spec,
               StrCat(CountOf(ranks, "rank"), " of a host need ", count * share, " ", noun, "s, and there ",
                      units.size() == 1 ? "is " : "are ", CountOf(static_cast<int64_t>(units.size()), noun)));
  }
  Sets sets;
  for (size_t i = 0; i < count; ++i) {
    const auto from = units.begin() + static_cast<std::ptrdiff_t>(i * share);
    sets.push_back(Flatten(from, from + static_cast<std::ptrdiff_t>(share)));
  }
  return sets;
}

Sets Single(const std::vector<int>& cpu_ids) {
  Sets units;
  for (const int cpu : cpu_ids) units.push_back({cpu});
  return units;
}

Sets Cores(const std::vector<int>& cpu_ids, const CpuLayout& layout) {
  std::map<int, std::vector<int>> by_core;
  for (const int cpu : cpu_ids) {
    const auto core = layout.core_of.find(cpu);
    by_core[core == layout.core_of.end() ? cpu : core->second].push_back(cpu);
  }
  Sets cores;
  for (auto& [core, cpus] : by_core) cores.push_back(std::move(cpus));
  return cores;
}

Result<Sets> ByNuma(std::string_view spec, int ranks, const std::vector<int>& cpu_ids,
                    const CpuLayout& layout) {
  Sets nodes;
  for (const std::vector<int>& node : layout.numa) {
    std::vector<int> usable;
    std::ranges::copy_if(node, std::back_inserter(usable),
                         [&](int cpu) { return std::ranges::find(cpu_ids, cpu) != cpu_ids.end(); });
    if (!usable.empty()) nodes.push_back(std::move(usable));
  }
  if (nodes.empty()) return Bad(spec, "this machine does not tell its NUMA nodes");
  Sets sets;
  const auto count = static_cast<size_t>(ranks);
  for (size_t i = 0; i < count; ++i) sets.push_back(nodes[i * nodes.size() / count]);
  return sets;
}

Result<Sets> Listed(std::string_view spec, std::string_view entries, int ranks,
                    const std::vector<int>& cpu_ids) {
  Sets sets;
  for (const std::string& entry : Split(entries, ':')) {
    const auto cpus = ParseCpuList(entry);
    if (!cpus) return Bad(spec, StrCat(Quoted(entry), " is no list of processors"));
    const auto bad = std::ranges::find_if(
        *cpus, [&](int cpu) { return std::ranges::find(cpu_ids, cpu) == cpu_ids.end(); });
    if (bad != cpus->end() && !cpu_ids.empty())
      return Bad(spec, StrCat("processor ", *bad, " may not be used here"));
    sets.push_back(*cpus);
    if (sets.size() > kMaxCpu) return Bad(spec, "the list is too long");
  }
  const auto count = static_cast<size_t>(ranks);
  if (sets.size() < count) {
    return Bad(spec, StrCat("it is for ", CountOf(static_cast<int64_t>(sets.size()), "rank"),
                            ", and a host has ", ranks));
  }
  sets.resize(count);
  return sets;
}

std::string_view WithoutVerbose(std::string_view spec) {
  constexpr std::string_view kVerbose = "verbose,";
  return spec.starts_with(kVerbose) ? spec.substr(kVerbose.size()) : spec;
}

}  // namespace

CpuLayout ReadCpuLayout(const std::vector<int>& cpu_ids, const std::string& folder) {
  CpuLayout layout;
  for (const int cpu : cpu_ids) {
    const auto core = ReadCpuList(StrCat(folder, "/cpu/cpu", cpu, "/topology/thread_siblings_list"));
    if (core) layout.core_of[cpu] = core->front();
  }
  const auto nodes = ReadCpuList(StrCat(folder, "/node/online"));
  for (const int node : nodes.value_or(std::vector<int>())) {
    if (layout.numa.size() == kMaxNumaNodes) break;
    const auto cpus = ReadCpuList(StrCat(folder, "/node/node", node, "/cpulist"));
    if (cpus) layout.numa.push_back(*cpus);
  }
  return layout;
}

Result<Sets> CpusPerLocalRank(std::string_view spec, int ranks, const std::vector<int>& cpu_ids,
                              const CpuLayout& layout) {
  const std::string_view kind = WithoutVerbose(spec);
  if (kind.empty() || kind == "none") return Sets();
  if (ranks < 1) return Bad(spec, "there are no ranks");
  if (kind.starts_with("list:")) return Listed(spec, kind.substr(5), ranks, cpu_ids);
  if (kind == "cores" || kind == "core") return Deal(spec, ranks, Cores(cpu_ids, layout), 0, "core");
  if (kind == "numa") return ByNuma(spec, ranks, cpu_ids, layout);
  if (kind == "threads" || kind == "thread" || kind == "depth")
    return Deal(spec, ranks, Single(cpu_ids), 0, "processor");
  if (kind.starts_with("depth:")) {
    const auto depth = ParseInt(kind.substr(6));
    if (!depth || *depth < 1 || *depth > kMaxCpu)
      return Bad(spec, "the depth is a number of processors, at least 1");
    return Deal(spec, ranks, Single(cpu_ids), static_cast<size_t>(*depth), "processor");
  }
  return Bad(spec, "it is not known");
}

Result<Sets> CpusPerLocalRank(std::string_view spec, int ranks, const std::vector<int>& cpu_ids) {
  const std::string_view kind = WithoutVerbose(spec);
  const bool by_layout = kind.starts_with("core") || kind == "numa";
  return CpusPerLocalRank(spec, ranks, cpu_ids, by_layout ? ReadCpuLayout(cpu_ids) : CpuLayout());
}

}  // namespace overcap
