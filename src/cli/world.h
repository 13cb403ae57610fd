// SPDX-License-Identifier: Apache-2.0
// What a command may use. src/main builds the real one, tests one of fakes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "cli/output.h"
#include "control/config.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap {
class Cluster;  // clusters/cluster.h; commands hand it to the use cases in control/
}

namespace overcap::cli {

class World;
struct Command;  // command.h

// Makes the cluster `name` as `config` describes it, without connecting anywhere yet.
using ClusterMaker =
    std::function<Result<std::shared_ptr<Cluster>>(const std::string& name, const World& world)>;

class World {
 public:
  struct Parts {
    std::string root;    // where jobs, store and socket stand (docs/formats/job-folder.md)
    std::string binary;  // this program's own file, absolute
    std::string folder;  // the current folder, absolute; "": it does not exist any more
    std::string user;
    Clock* clock = nullptr;
    Random* random = nullptr;
    Output* output = nullptr;
    ConfigPlaces config_places;
    ClusterMaker make_cluster;
  };
  explicit World(Parts parts) : parts_(std::move(parts)) {}

  const std::string& root() const { return parts_.root; }
  const std::string& binary() const { return parts_.binary; }
  Result<std::string> Folder() const;  // the current one; kUsage when it does not exist any more
  const std::string& user() const { return parts_.user; }
  Clock& clock() const { return *parts_.clock; }
  Random& random() const { return *parts_.random; }
  Output& out() const { return *parts_.output; }
  const ConfigPlaces& config_places() const { return parts_.config_places; }

  // The effective configuration. Read before a command runs, unless it is marked without_config.
  const Config& config() const { return config_; }
  Result<void> LoadConfig();
  void UseConfigFile(std::string path) { parts_.config_places.named_file = std::move(path); }

  // Every command of the program, for help and completion.
  std::span<const Command* const> commands() const { return commands_; }
  void UseCommands(std::span<const Command* const> commands) { commands_ = commands; }

  // The cluster of that name, made at the first call and kept; "": that of --cluster, else of the
  // configuration.
  Result<Cluster*> GetCluster(std::string_view name = {});
  void UseCluster(std::string name) { cluster_name_ = std::move(name); }
  // Where the jobs and the store of that cluster stand: its folder, else root().
  Result<std::string> ClusterFolder() const;
  // The name that GetCluster("") would take.
  const std::string& cluster_name() const { return cluster_name_.empty() ? config_.cluster : cluster_name_; }

 private:
  Parts parts_;
  Config config_;
  std::span<const Command* const> commands_;
  std::string cluster_name_;  // of --cluster; empty: the configuration's
  std::map<std::string, std::shared_ptr<Cluster>, std::less<>> clusters_;
};

}  // namespace overcap::cli
