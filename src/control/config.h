// SPDX-License-Identifier: Apache-2.0
// The effective configuration and where each value comes from. config_schema.cc is the list of keys.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "clusters/cluster_settings.h"
#include "control/mounts/mount_entry.h"
#include "control/stores/store_entry.h"
#include "sys/variables.h"

namespace overcap {

// GPUs that the configuration declares (machines without real ones, tests).
struct GpuDeclaration {
  std::string type;  // normalised by whoever builds the Machine
  int count = 1;
  int64_t memory_bytes = 0;  // 0: not known
  bool operator==(const GpuDeclaration&) const = default;
};

// Of defaults.gpus: one where the machine has any.
constexpr int kGpusByMachine = -1;

// What `submit` takes when a flag is not given.
struct JobDefaults {
  int gpus = kGpusByMachine;
  int cpus = 0;              // 0: the share of its GPUs, without GPUs one per rank
  int64_t mem_bytes = 0;     // 0: not limited
  int64_t time_seconds = 0;  // 0: no limit
  int ranks_per_node = 0;    // 0: one per GPU of a node, one without GPUs
  bool requeue = false;
  bool requeue_on_timeout = false;
  int64_t warn_seconds = 0;  // of jobs that are requeued; 0: no warning
  int max_restarts = 0;
  bool operator==(const JobDefaults&) const = default;
};

struct ClusterConfig {
  std::string driver = "local";
  // What is declared takes the place of what is detected.
  std::optional<std::vector<GpuDeclaration>> gpus;
  int cpus = 0;           // 0: detected
  int64_t mem_bytes = 0;  // 0: detected
  std::string policy;     // a file: how labs share the machine; "": the one that was applied, if any
  // Of clusters with a scheduler of their own. Folders are as they were written (expand_folder.h).
  std::string folder;  // where jobs and store stand; "": under the usual root
  SchedulerSettings scheduler;
  std::string mounts_at;  // the nodes' own folder for mounts, as written; "": /tmp
  MountEntries mounts;    // clusters.<name>.mounts: of its jobs
  // Jobs through a store (docs/formats/job-store.md), as written; "": the nodes see the folder.
  std::string store, node_folder, node_program;
  int64_t backlog_bytes = int64_t{4} << 30;
  JobDefaults defaults;  // those that Config::settings names count, over Config::defaults
  bool implied = false;  // no file names it: its scheduler's programs are at hand
  bool operator==(const ClusterConfig&) const = default;
};

// One value that a file set, for `config show`.
struct ConfigSetting {
  std::string value;  // as `config show` prints it
  std::string file;
  int line = 0;
};

struct Config {
  std::string cluster = "local";  // cluster: where jobs go without --cluster
  std::map<std::string, ClusterConfig> clusters = {{"local", {}}};  // clusters.<name>

  JobDefaults defaults;  // defaults

  // code: a captured folder larger than that brings a warning
  struct Code {
    int64_t max_bytes_warn = int64_t{1} << 30;
    int64_t max_files_warn = 100'000;
  } code;

  // jobs.grace: seconds between TERM and KILL when a job is stopped
  struct Jobs {
    int64_t grace_seconds = 10;
  } jobs;

  // logs.max: bytes of each log that are kept; 0: all, -1: as its file system allows (sys/log_bound.h)
  struct Logs {
    int64_t max_bytes = -1;
  } logs;

  // retention: what `gc` removes of ended jobs; 0: no limit
  struct Retention {
    int64_t age_seconds = int64_t{30} * 86400;
    int64_t size_bytes = 0;
  } retention;

  // workspaces: what `workspace create` takes when a flag is not given, and what `workspace prune` keeps.
  // Folders are as they were written (expand_folder.h).
  struct Workspaces {
    std::string at = "/scratch/$USER";  // the folder in which they are made, each in one of its own name
    std::string env = "none";
    std::vector<std::string> setup;
    std::string store;
    std::string key_file;
    std::vector<std::string> exclude;
    struct Keep {
      int64_t last = 0, hourly = 0, daily = 0, weekly = 0, monthly = 0, yearly = 0;
      int64_t within_seconds = 0;
    } keep;
  } workspaces;

  StoreEntries stores;  // stores.<name>; those of a nearer file hide others of the same name

  MountEntries mounts;  // mounts.<name>: of all jobs

  std::map<std::string, ConfigSetting> settings;  // by key path: what files set, the winner only
  std::vector<std::string> files;                 // that were read, nearest first
};

// Where configuration may stand.
struct ConfigPlaces {
  std::string folder;      // overcap.yaml is looked for here and upwards; the first one found counts
  std::string named_file;  // --config or $OVERCAP_CONFIG: in the place of that one; must exist
  std::string user_file;   // ~/.config/overcap/overcap.yaml
  std::string system_file = "/etc/overcap/overcap.yaml";
  Variables variables;  // say which clusters are there by themselves (implied_clusters.h); empty: none
};
// From $OVERCAP_CONFIG, $XDG_CONFIG_HOME and $HOME.
ConfigPlaces DefaultConfigPlaces(std::string folder);

// The files that exist, nearest first. kNotFound when the named one does not.
Result<std::vector<std::string>> FindConfigFiles(const ConfigPlaces& places);

// What `submit` takes on that cluster: its own defaults over those for all.
JobDefaults DefaultsFor(const Config& config, const std::string& cluster);
// The same configuration with these as its defaults.
Config ConfigFor(const Config& config, const std::string& cluster);

// Reads and merges them: a key of a nearer file wins. kUsage "overcap.yaml:3: ..." for whatever is wrong in
// one of them; never throws. Without any file it costs a few stat calls.
Result<Config> LoadConfig(const ConfigPlaces& places);

// One more file over `config`: its keys are taken where `config.settings` has none yet.
Result<void> ApplyConfigText(std::string_view text, const std::string& file, Config* config);

}  // namespace overcap
