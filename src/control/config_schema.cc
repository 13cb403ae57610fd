// SPDX-License-Identifier: Apache-2.0
#include "control/config_schema.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/units.h"
#include "clusters/all_clusters.h"

namespace overcap {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr int64_t kMost = int64_t{9'000'000'000'000'000'000};
constexpr int64_t kHundredYears = int64_t{100} * 365 * 86400;

#define OC_FIELD(expression) [](Config& c, const std::string&) -> ConfigField { return &c.expression; }
#define OC_CLUSTER_FIELD(member) \
  [](Config& c, const std::string& name) -> ConfigField { return &c.clusters[name].member; }

// clang-format off
constexpr ConfigKey kKeys[] = {
    {"cluster", ConfigType::kName, 0, 0, "the cluster that is used without --cluster", OC_FIELD(cluster)},
    {"clusters.*.driver", ConfigType::kDriver, 0, 0, "what kind of cluster it is", OC_CLUSTER_FIELD(driver)},
    {"clusters.*.gpus", ConfigType::kGpus, 0, 0, "GPUs in the place of those detected: a list of {type, count, memory}", OC_CLUSTER_FIELD(gpus)},
    {"clusters.*.cpus", ConfigType::kCount, 0, kMillion, "CPUs for jobs; 0: as many as detected", OC_CLUSTER_FIELD(cpus), 0, "detected"},
    {"clusters.*.mem", ConfigType::kBytes, 0, kMost, "memory for jobs; none: as much as detected", OC_CLUSTER_FIELD(mem_bytes), 0, "detected"},
    {"defaults.gpus", ConfigType::kCount, 0, kMillion, "GPUs of a job without -n", OC_FIELD(defaults.gpus), kGpusByMachine, "1 where there are GPUs"},
    {"defaults.cpus", ConfigType::kCount, 0, kMillion, "CPUs per node of a job without --cpus; 0: the share of its GPUs, without GPUs one per rank", OC_FIELD(defaults.cpus), 0, "share"},
    {"defaults.mem", ConfigType::kBytes, 0, kMost, "memory per node of a job without --mem; none: no limit", OC_FIELD(defaults.mem_bytes)},
    {"defaults.time", ConfigType::kDuration, 0, kHundredYears, "time limit of a job without --time; none: no limit", OC_FIELD(defaults.time_seconds)},
    {"defaults.ranks_per_node", ConfigType::kCount, 0, kMillion, "ranks per node; 0: one per GPU, one without GPUs", OC_FIELD(defaults.ranks_per_node), 0, "one per GPU"},
    {"defaults.requeue", ConfigType::kSwitch, 0, 0, "start again after preemption, a reboot or a lost agent", OC_FIELD(defaults.requeue)},
    {"defaults.max_restarts", ConfigType::kCount, 0, kMillion, "start again after a failure, so many times", OC_FIELD(defaults.max_restarts)},
    {"code.max_bytes_warn", ConfigType::kBytes, 1, kMost, "warn when the captured code is larger", OC_FIELD(code.max_bytes_warn)},
    {"code.max_files_warn", ConfigType::kCount, 1, kMost, "warn when the captured code has more files", OC_FIELD(code.max_files_warn)},
    {"jobs.grace", ConfigType::kDuration, 1, 86400, "time between TERM and KILL when a job is stopped", OC_FIELD(jobs.grace_seconds)},
    {"retention.age", ConfigType::kDuration, 0, kHundredYears, "gc removes jobs that ended longer ago; none: keeps them", OC_FIELD(retention.age_seconds)},
    {"retention.size", ConfigType::kBytes, 0, kMost, "gc removes the oldest ended jobs beyond this size; none: no limit", OC_FIELD(retention.size_bytes)},
};
// clang-format on

tl::unexpected<Error> NotA(const ConfigKey& key, std::string_view text, std::string hint = {}) {
  return Fail(ErrorCode::kUsage, StrCat("must be ", ConfigTypeName(key.type), ", not '", ToUtf8(text), "'"),
              std::move(hint));
}

Result<int64_t> ParseNumber(const ConfigKey& key, const std::string& text) {
  const bool has_unit = key.type != ConfigType::kCount;
  if (has_unit && text == "none" && key.min == 0) return 0;
  if (has_unit && (text == "0" || text == "0s" || text == "0B")) return 0;
  if (has_unit) {
    auto parsed = key.type == ConfigType::kBytes ? ParseBytes(text) : ParseDurationSeconds(text);
    if (!parsed) return NotA(key, text, parsed.error().hint);
    return *parsed;
  }
  const auto parsed = ParseInt(text);
  if (!parsed) return NotA(key, text);
  return *parsed;
}

Result<bool> ParseSwitch(const ConfigKey& key, std::string_view text) {
  for (const std::string_view word : {"true", "True", "yes", "on"}) {
    if (text == word) return true;
  }
  for (const std::string_view word : {"false", "False", "no", "off"}) {
    if (text == word) return false;
  }
  return NotA(key, text);
}

bool IsName(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

// With the largest unit that keeps the value exact: 5400 -> "90m".
struct Unit {
  char letter;
  int64_t size;
};
std::string Exact(int64_t value, std::span<const Unit> units) {
  if (value == 0) return "none";
  for (const Unit& unit : units) {
    if (value % unit.size == 0) return StrCat(value / unit.size, unit.letter);
  }
  return std::to_string(value);
}
constexpr Unit kByteUnits[] = {
    {'T', int64_t{1} << 40}, {'G', 1 << 30}, {'M', 1 << 20}, {'K', 1 << 10}, {'B', 1}};
constexpr Unit kTimeUnits[] = {{'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};

// A number of the key's kind: "1s", "16G", "4".
std::string ShowNumber(const ConfigKey& key, int64_t number) {
  if (key.type == ConfigType::kBytes) return Exact(number, kByteUnits);
  if (key.type == ConfigType::kDuration) return Exact(number, kTimeUnits);
  return std::to_string(number);
}

int64_t NumberIn(const ConfigField& field) {
  auto* const* small = std::get_if<int*>(&field);
  return small != nullptr ? **small : **std::get_if<int64_t*>(&field);
}

Result<void> CheckDriver(const std::string& text) {
  const std::vector<std::string> drivers = ClusterDrivers();
  if (std::ranges::find(drivers, text) != drivers.end()) return {};
  const std::string nearest = Nearest(text, drivers);
  return Fail(ErrorCode::kUsage, StrCat("must be a driver, and there is no '", text, "'"),
              nearest.empty() ? StrCat("drivers are: ", Join(drivers, ", "))
                              : StrCat("did you mean '", nearest, "'?"));
}

std::string ShowGpus(const std::optional<std::vector<GpuDeclaration>>& gpus) {
  if (!gpus) return "detected";
  std::vector<std::string> parts;
  for (const GpuDeclaration& gpu : *gpus) {
    parts.push_back(
        StrCat("{type: ", gpu.type, ", count: ", gpu.count,
               gpu.memory_bytes > 0 ? StrCat(", memory: ", Exact(gpu.memory_bytes, kByteUnits)) : "", "}"));
  }
  return StrCat("[", Join(parts, ", "), "]");
}

}  // namespace

std::string_view ConfigTypeName(ConfigType type) {
  constexpr std::array<std::string_view, 7> kNames = {"a name of letters, digits, '.', '_' and '-'",
                                                      "the name of a driver",
                                                      "a whole number",
                                                      "true or false",
                                                      "a duration like 90s, 30m or 4h",
                                                      "a size like 16G",
                                                      "a list of {type, count, memory}"};
  return kNames[static_cast<size_t>(type)];
}

std::span<const ConfigKey> ConfigKeys() {
  return kKeys;
}

std::string ConfigPath(const ConfigKey& key, std::string_view name) {
  const size_t star = key.path.find('*');
  if (star == std::string_view::npos) return std::string(key.path);
  return StrCat(key.path.substr(0, star), name, key.path.substr(star + 1));
}

Result<void> SetFromText(const ConfigKey& key, const ConfigField& field, const std::string& text) {
  if (auto* const* name = std::get_if<std::string*>(&field)) {
    if (!IsName(text)) return NotA(key, text);
    if (key.type == ConfigType::kDriver) OC_TRY_VOID(CheckDriver(text));
    **name = text;
    return {};
  }
  if (auto* const* on = std::get_if<bool*>(&field)) {
    OC_TRY(value, ParseSwitch(key, text));
    **on = value;
    return {};
  }
  OC_TRY(number, ParseNumber(key, text));
  if (number < key.min)
    return Fail(ErrorCode::kUsage, StrCat("must be at least ", ShowNumber(key, key.min), ", not ", text));
  if (number > key.max)
    return Fail(ErrorCode::kUsage, StrCat("must be at most ", ShowNumber(key, key.max), ", not ", text));
  if (auto* const* small = std::get_if<int*>(&field)) **small = static_cast<int>(number);
  if (auto* const* large = std::get_if<int64_t*>(&field)) **large = number;
  return {};
}

std::string ShowValue(const ConfigKey& key, const ConfigField& field) {
  if (auto* const* name = std::get_if<std::string*>(&field)) return **name;
  if (auto* const* on = std::get_if<bool*>(&field)) return **on ? "true" : "false";
  if (auto* const* gpus = std::get_if<std::optional<std::vector<GpuDeclaration>>*>(&field))
    return ShowGpus(**gpus);
  return IsRule(key, field) ? std::string(key.rule) : ShowNumber(key, NumberIn(field));
}

bool IsRule(const ConfigKey& key, const ConfigField& field) {
  return !key.rule.empty() && NumberIn(field) == key.rule_number;
}

std::vector<EffectiveValue> EffectiveValues(const Config& config) {
  Config copy = config;  // fields are handed out for writing
  std::vector<EffectiveValue> values;
  const auto add = [&](const ConfigKey& key, const std::string& name) {
    EffectiveValue value = {ConfigPath(key, name), ShowValue(key, key.field(copy, name)), "", 0, &key, name};
    if (const auto setting = config.settings.find(value.path); setting != config.settings.end()) {
      value.file = setting->second.file;
      value.line = setting->second.line;
    }
    values.push_back(std::move(value));
  };
  const auto starred = [](const ConfigKey& key) { return key.path.find('*') != std::string_view::npos; };
  bool clusters_done = false;
  for (const ConfigKey& key : kKeys) {
    if (!starred(key)) {
      add(key, "");
    } else if (!std::exchange(clusters_done, true)) {
      for (const auto& [name, unused] : config.clusters) {
        for (const ConfigKey& of_cluster : kKeys) {
          if (starred(of_cluster)) add(of_cluster, name);
        }
      }
    }
  }
  return values;
}

}  // namespace overcap
