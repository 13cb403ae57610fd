// SPDX-License-Identifier: Apache-2.0
#include "control/config_schema.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/units.h"
#include "clusters/all_clusters.h"
#include "control/stores/config_stores.h"
#include "stores/location.h"

namespace overcap {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr int64_t kMost = int64_t{9'000'000'000'000'000'000};
constexpr int64_t kHundredYears = int64_t{100} * 365 * 86400;

constexpr ConfigScope kMachine = ConfigScope::kMachine, kSched = ConfigScope::kScheduler;

constexpr std::string_view kOwnDefaults = "clusters.*.defaults.";

#define OC_FIELD(expression) [](Config& c, const std::string&) -> ConfigField { return &c.expression; }
#define OC_CLUSTER_FIELD(member) \
  [](Config& c, const std::string& name) -> ConfigField { return &c.clusters[name].member; }

// clang-format off
constexpr ConfigKey kKeys[] = {
    {"cluster", ConfigType::kName, 0, 0, "the cluster that is used without --cluster", OC_FIELD(cluster)},
    {"clusters.*.driver", ConfigType::kDriver, 0, 0, "what kind of cluster it is", OC_CLUSTER_FIELD(driver)},
    {"clusters.*.gpus", ConfigType::kGpus, 0, 0, "GPUs in the place of those detected: a list of {type, count, memory}", OC_CLUSTER_FIELD(gpus), 0, {}, kMachine},
    {"clusters.*.cpus", ConfigType::kCount, 0, kMillion, "CPUs for jobs; 0: as many as detected", OC_CLUSTER_FIELD(cpus), 0, "detected", kMachine},
    {"clusters.*.mem", ConfigType::kBytes, 0, kMost, "memory for jobs; none: as much as detected", OC_CLUSTER_FIELD(mem_bytes), 0, "detected", kMachine},
    {"clusters.*.policy", ConfigType::kFolder, 0, 0, "the file that says how labs share this machine, for its engine", OC_CLUSTER_FIELD(policy), 0, "the one that was applied, if any", kMachine},
    {"clusters.*.partition", ConfigType::kNames, 0, 0, "partitions of jobs without --partition; the first that can start one takes it", OC_CLUSTER_FIELD(scheduler.partitions), 0, "the cluster's own", kSched},
    {"clusters.*.account", ConfigType::kText, 0, 0, "the account of jobs without --account", OC_CLUSTER_FIELD(scheduler.account), 0, "the user's own", kSched},
    {"clusters.*.qos", ConfigType::kText, 0, 0, "the QOS of jobs without --qos", OC_CLUSTER_FIELD(scheduler.qos), 0, "the account's own", kSched},
    {"clusters.*.constraint", ConfigType::kText, 0, 0, "features that the nodes of all jobs must have", OC_CLUSTER_FIELD(scheduler.constraint), 0, "none", kSched},
    {"clusters.*.reservation", ConfigType::kText, 0, 0, "the reservation in which jobs run", OC_CLUSTER_FIELD(scheduler.reservation), 0, "none", kSched},
    {"clusters.*.args", ConfigType::kWords, 0, 0, "more words for the submit program", OC_CLUSTER_FIELD(scheduler.args), 0, "none", kSched},
    {"clusters.*.programs", ConfigType::kFolder, 0, 0, "the folder of the scheduler's programs", OC_CLUSTER_FIELD(scheduler.programs), 0, "on PATH", kSched},
    {"clusters.*.folder", ConfigType::kFolder, 0, 0, "where jobs and code stand, on a file system that all nodes see", OC_CLUSTER_FIELD(folder), 0, "OVERCAP_HOME", kSched},
    {"clusters.*.store", ConfigType::kStore, 0, 0, "the store through which code and logs of jobs go, where nodes and submitter share no folder", OC_CLUSTER_FIELD(store), 0, "none"},
    {"clusters.*.node_folder", ConfigType::kFolder, 0, 0, "jobs through a store: their folder on each node", OC_CLUSTER_FIELD(node_folder), 0, "/tmp/overcap-UID", kSched},
    {"clusters.*.node_program", ConfigType::kFolder, 0, 0, "jobs through a store: where this program is on each node", OC_CLUSTER_FIELD(node_program), 0, "as here", kSched},
    {"clusters.*.backlog", ConfigType::kBytes, 1 << 20, kMost, "jobs through a store: bytes of logs that wait on a node for it; more are dropped", OC_CLUSTER_FIELD(backlog_bytes), 0, {}, kSched},
    {"clusters.*.mirror", ConfigType::kFolder, 0, 0, "a folder in which users share what they read of the scheduler", OC_CLUSTER_FIELD(scheduler.mirror_folder), 0, "none", kSched},
    {"clusters.*.overcap_partitions", ConfigType::kNames, 0, 0, "partitions over the cap, whose jobs can be preempted", OC_CLUSTER_FIELD(scheduler.overcap_partitions), 0, "by name and preemption", kSched},
    {"clusters.*.gpu_type_as_constraint", ConfigType::kSwitch, 0, 0, "ask for GPU types by node features, not by gres", OC_CLUSTER_FIELD(scheduler.gpu_type_as_constraint), 0, {}, kSched},
    {"clusters.*.max_time", ConfigType::kDuration, 0, kHundredYears, "longest time limit of a job; none: no limit", OC_CLUSTER_FIELD(scheduler.max_time_seconds), 0, {}, kSched},
    {"clusters.*.max_gpus", ConfigType::kCount, 0, kMillion, "most GPUs of a job; 0: no limit", OC_CLUSTER_FIELD(scheduler.max_gpus), 0, "no limit", kSched},
    {"clusters.*.mounts_at", ConfigType::kFolder, 0, 0, "the nodes' own folder for mount points, caches and copies of mounts", OC_CLUSTER_FIELD(mounts_at), 0, "/tmp"},
    {"clusters.*.defaults.gpus", ConfigType::kCount, 0, kMillion, "defaults.gpus of its jobs", OC_CLUSTER_FIELD(defaults.gpus)},
    {"clusters.*.defaults.cpus", ConfigType::kCount, 0, kMillion, "defaults.cpus of its jobs", OC_CLUSTER_FIELD(defaults.cpus)},
    {"clusters.*.defaults.mem", ConfigType::kBytes, 0, kMost, "defaults.mem of its jobs", OC_CLUSTER_FIELD(defaults.mem_bytes)},
    {"clusters.*.defaults.time", ConfigType::kDuration, 0, kHundredYears, "defaults.time of its jobs", OC_CLUSTER_FIELD(defaults.time_seconds)},
    {"clusters.*.defaults.ranks_per_node", ConfigType::kCount, 0, kMillion, "defaults.ranks_per_node of its jobs", OC_CLUSTER_FIELD(defaults.ranks_per_node)},
    {"clusters.*.defaults.requeue", ConfigType::kSwitch, 0, 0, "defaults.requeue of its jobs", OC_CLUSTER_FIELD(defaults.requeue)},
    {"clusters.*.defaults.requeue_on_timeout", ConfigType::kSwitch, 0, 0, "defaults.requeue_on_timeout of its jobs", OC_CLUSTER_FIELD(defaults.requeue_on_timeout)},
    {"clusters.*.defaults.warn", ConfigType::kDuration, 0, 65535, "defaults.warn of its jobs", OC_CLUSTER_FIELD(defaults.warn_seconds)},
    {"clusters.*.defaults.max_restarts", ConfigType::kCount, 0, kMillion, "defaults.max_restarts of its jobs", OC_CLUSTER_FIELD(defaults.max_restarts)},
    {"defaults.gpus", ConfigType::kCount, 0, kMillion, "GPUs of a job without -n", OC_FIELD(defaults.gpus), kGpusByMachine, "1 where there are GPUs"},
    {"defaults.cpus", ConfigType::kCount, 0, kMillion, "CPUs per node of a job without --cpus; 0: the share of its GPUs, without GPUs one per rank", OC_FIELD(defaults.cpus), 0, "share"},
    {"defaults.mem", ConfigType::kBytes, 0, kMost, "memory per node of a job without --mem; none: no limit", OC_FIELD(defaults.mem_bytes)},
    {"defaults.time", ConfigType::kDuration, 0, kHundredYears, "time limit of a job without --time; none: no limit", OC_FIELD(defaults.time_seconds)},
    {"defaults.ranks_per_node", ConfigType::kCount, 0, kMillion, "ranks per node; 0: one per GPU, one without GPUs", OC_FIELD(defaults.ranks_per_node), 0, "one per GPU"},
    {"defaults.requeue", ConfigType::kSwitch, 0, 0, "start again after preemption, a reboot or a lost agent", OC_FIELD(defaults.requeue)},
    {"defaults.requeue_on_timeout", ConfigType::kSwitch, 0, 0, "start again when the time limit comes", OC_FIELD(defaults.requeue_on_timeout)},
    {"defaults.warn", ConfigType::kDuration, 0, 65535, "jobs that are requeued get USR1 so long before their time limit; none: no warning", OC_FIELD(defaults.warn_seconds)},
    {"defaults.max_restarts", ConfigType::kCount, 0, kMillion, "start again after a failure, so many times", OC_FIELD(defaults.max_restarts)},
    {"code.max_bytes_warn", ConfigType::kBytes, 1, kMost, "warn when the captured code is larger; in the home folder it is refused then", OC_FIELD(code.max_bytes_warn)},
    {"code.max_files_warn", ConfigType::kCount, 1, kMost, "warn when the captured code has more files; in the home folder it is refused then", OC_FIELD(code.max_files_warn)},
    {"jobs.grace", ConfigType::kDuration, 1, 86400, "time between TERM and KILL when a job is stopped", OC_FIELD(jobs.grace_seconds)},
    {"logs.max", ConfigType::kBytes, 0, kMost, "bytes of each log of a rank that are kept: the first and the newest; none: all", OC_FIELD(logs.max_bytes), -1, "the smaller of 10G and a tenth of its file system"},
    {"retention.age", ConfigType::kDuration, 0, kHundredYears, "gc removes jobs that ended longer ago; none: keeps them", OC_FIELD(retention.age_seconds)},
    {"retention.size", ConfigType::kBytes, 0, kMost, "gc removes the oldest ended jobs beyond this size; none: no limit", OC_FIELD(retention.size_bytes)},
    {"workspaces.at", ConfigType::kFolder, 0, 0, "the folder in which workspaces are made, each in one of its own name", OC_FIELD(workspaces.at)},
    {"workspaces.env", ConfigType::kEnv, 0, 0, "the environment that a new workspace gets", OC_FIELD(workspaces.env)},
    {"workspaces.setup", ConfigType::kLines, 0, 0, "commands that set up a new workspace, a line each", OC_FIELD(workspaces.setup), 0, "none"},
    {"workspaces.store", ConfigType::kStore, 0, 0, "the repository of new workspaces", OC_FIELD(workspaces.store), 0, "OVERCAP_HOME/store"},
    {"workspaces.key_file", ConfigType::kFolder, 0, 0, "the key file that encrypts new workspaces", OC_FIELD(workspaces.key_file), 0, "none"},
    {"workspaces.exclude", ConfigType::kWords, 0, 0, "what is not saved of new workspaces, patterns as in .gitignore", OC_FIELD(workspaces.exclude), 0, "none"},
    {"workspaces.keep.last", ConfigType::kCount, 0, kMillion, "prune keeps so many snapshots, the newest", OC_FIELD(workspaces.keep.last)},
    {"workspaces.keep.hourly", ConfigType::kCount, 0, kMillion, "and the last of so many hours", OC_FIELD(workspaces.keep.hourly)},
    {"workspaces.keep.daily", ConfigType::kCount, 0, kMillion, "and the last of so many days", OC_FIELD(workspaces.keep.daily)},
    {"workspaces.keep.weekly", ConfigType::kCount, 0, kMillion, "and the last of so many weeks", OC_FIELD(workspaces.keep.weekly)},
    {"workspaces.keep.monthly", ConfigType::kCount, 0, kMillion, "and the last of so many months", OC_FIELD(workspaces.keep.monthly)},
    {"workspaces.keep.yearly", ConfigType::kCount, 0, kMillion, "and the last of so many years", OC_FIELD(workspaces.keep.yearly)},
    {"workspaces.keep.within", ConfigType::kDuration, 0, kHundredYears, "and all that are younger; none: no such rule", OC_FIELD(workspaces.keep.within_seconds)},
};
// clang-format on

tl::unexpected<Error> NotA(const ConfigKey& key, std::string_view text, std::string hint = {}) {
  return Fail(ErrorCode::kUsage, StrCat("must be ", ConfigTypeName(key.type), ", not ", Quoted(text)),
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

bool IsOfCluster(const ConfigKey& key) {
  return key.path.find('*') != std::string_view::npos;
}

std::string KeysMeantFor(std::string_view driver) {
  std::vector<std::string> keys;
  for (const ConfigKey& key : kKeys) {
    if (!IsOfCluster(key) || key.path.starts_with(kOwnDefaults) || !IsMeantFor(key, driver)) continue;
    keys.emplace_back(key.path.substr(key.path.rfind('.') + 1));
  }
  return Join(keys, ", ");
}

bool IsLine(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7F; });
}

bool IsTextFor(ConfigType type, std::string_view text) {
  if (type == ConfigType::kText) return IsLine(text);
  if (type == ConfigType::kEnv) return text == "conda" || text == "venv" || text == "none";
  if (type == ConfigType::kStore && (HasStoreScheme(text) || !SplitStoreName(text).name.empty()))
    return IsLine(text);
  if (type != ConfigType::kFolder && type != ConfigType::kStore) return IsName(text);
  return IsLine(text) && (text[0] == '/' || text[0] == '$' || text == "~" || text.starts_with("~/"));
}

// A list that was written as one text.
Result<void> SetList(const ConfigKey& key, const ConfigField& field, const std::string& text) {
  if (key.type == ConfigType::kNames) {
    std::vector<std::string> names = Split(text, ',');
    for (std::string& name : names) name = Trim(name);
    return SetFromList(key, field, std::move(names));
  }
  if (key.type == ConfigType::kLines) {
    std::vector<std::string> lines = Split(text, '\n');
    std::erase_if(lines, [](const std::string& line) { return Trim(line).empty(); });
    return SetFromList(key, field, std::move(lines));
  }
  auto words = SplitWords(text);
  if (!words) return NotA(key, text, "a quote is not closed");
  return SetFromList(key, field, std::move(*words));
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
  constexpr std::array<std::string_view, 14> kNames = {
      "a name of letters, digits, '.', '_' and '-'",
      "the name of a driver",
      "a whole number",
      "true or false",
      "a duration like 90s, 30m or 4h",
      "a size like 16G",
      "a list of {type, count, memory}",
      "a list of names",
      "a list of words",
      "a text on one line",
      "conda, venv or none",
      "a list of lines",
      "an absolute folder, perhaps behind ~ or $NAME",
      "a folder, another location of a store, or a name in 'stores'"};
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
  if (std::holds_alternative<std::vector<std::string>*>(field)) return SetList(key, field, text);
  if (auto* const* name = std::get_if<std::string*>(&field)) {
    if (!IsTextFor(key.type, text)) return NotA(key, text);
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

Result<void> SetFromList(const ConfigKey& key, const ConfigField& field, std::vector<std::string> words) {
  for (const std::string& word : words) {
    if (key.type == ConfigType::kNames ? !IsName(word) : !IsLine(word)) return NotA(key, word);
  }
  **std::get_if<std::vector<std::string>*>(&field) = std::move(words);
  return {};
}

std::string ShowValue(const ConfigKey& key, const ConfigField& field) {
  if (IsRule(key, field)) return std::string(key.rule);
  if (auto* const* words = std::get_if<std::vector<std::string>*>(&field))
    return key.type == ConfigType::kNames ? Join(**words, ",") : ShellJoin(**words);
  if (auto* const* name = std::get_if<std::string*>(&field)) return **name;
  if (auto* const* on = std::get_if<bool*>(&field)) return **on ? "true" : "false";
  if (auto* const* gpus = std::get_if<std::optional<std::vector<GpuDeclaration>>*>(&field))
    return ShowGpus(**gpus);
  return ShowNumber(key, NumberIn(field));
}

bool IsRule(const ConfigKey& key, const ConfigField& field) {
  if (key.rule.empty()) return false;
  if (auto* const* text = std::get_if<std::string*>(&field)) return (*text)->empty();
  if (auto* const* words = std::get_if<std::vector<std::string>*>(&field)) return (*words)->empty();
  return NumberIn(field) == key.rule_number;
}

bool IsMeantFor(const ConfigKey& key, std::string_view driver) {
  const DriverTraits* traits = FindDriver(driver);
  if (key.scope == ConfigScope::kAll || traits == nullptr) return true;
  return traits->scheduler == (key.scope == ConfigScope::kScheduler);
}

Result<void> CheckClusterSettings(const Config& config) {
  for (const auto& [name, cluster] : config.clusters) {
    for (const ConfigKey& key : kKeys) {
      const auto setting = config.settings.find(ConfigPath(key, name));
      if (!IsOfCluster(key) || setting == config.settings.end() || IsMeantFor(key, cluster.driver)) continue;
      return Fail(ErrorCode::kUsage,
                  StrCat(setting->second.file, ":", setting->second.line, ": '", setting->first,
                         "' means nothing to a cluster of driver '", cluster.driver, "'"),
                  StrCat("its keys are: ", KeysMeantFor(cluster.driver), ", defaults"));
    }
  }
  return {};
}

namespace {

// A value of a section that the table of keys does not have.
EffectiveValue Unlisted(const Config& config, const std::string& entry, std::string_view field,
                        std::string text, const std::string& name) {
  EffectiveValue value;
  value.path = StrCat(entry, ".", field);
  value.value = std::move(text);
  value.name = name;
  if (const auto setting = config.settings.find(entry); setting != config.settings.end()) {
    value.file = setting->second.file;
    value.line = setting->second.line;
  }
  return value;
}

void AddMounts(const Config& config, const std::string& section, const MountEntries& mounts,
               std::vector<EffectiveValue>* values) {
  for (const auto& [name, entry] : mounts) {
    for (const MountField& field : MountFields(entry))
      values->push_back(Unlisted(config, StrCat(section, ".", name), field.name, field.value, name));
  }
}

}  // namespace

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
  bool clusters_done = false;
  for (const ConfigKey& key : kKeys) {
    if (!IsOfCluster(key)) {
      add(key, "");
    } else if (!std::exchange(clusters_done, true)) {
      for (const auto& [name, cluster] : config.clusters) {
        for (const ConfigKey& of_cluster : kKeys) {
          const bool own_default = of_cluster.path.starts_with(kOwnDefaults);
          if (own_default && !config.settings.contains(ConfigPath(of_cluster, name))) continue;
          if (IsOfCluster(of_cluster) && IsMeantFor(of_cluster, cluster.driver)) add(of_cluster, name);
        }
      }
    }
  }
  for (const auto& [name, entry] : config.stores) {
    for (const StoreField& field : StoreFields(entry))
      values.push_back(Unlisted(config, "stores." + name, field.name, field.value, name));
  }
  AddMounts(config, "mounts", config.mounts, &values);
  for (const auto& [name, cluster] : config.clusters)
    AddMounts(config, StrCat("clusters.", name, ".mounts"), cluster.mounts, &values);
  return values;
}

}  // namespace overcap
