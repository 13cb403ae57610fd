// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "base/json_writer.h"
#include "clusters/cluster.h"
#include "clusters/local/engine_client.h"
#include "clusters/local/local_policy.h"

namespace overcap {

// This machine, by its embedded engine. Makes no connection before it is needed; not thread safe.
class LocalCluster : public Cluster {
 public:
  struct Options {
    std::string name = "local";
    std::string root = {};                            // docs/formats/job-folder.md
    std::string binary = {};                          // to start the engine with; "": never
    std::function<Machine(bool fresh)> machine = {};  // what this machine has to give; `fresh`: look again
    std::string socket = {};                          // "": in the root
    bool system = false;  // root's engine for all users: it says what the machine has
    std::function<void(const std::string&)> tell = {};  // takes lines that the user should see at once
  };
  explicit LocalCluster(Options options);

  const std::string& Name() const override { return options_.name; }
  Capabilities GetCapabilities() const override;
  Result<SubmitPlan> Plan(const JobSpec& spec) override;
  Result<JobRecord> Submit(const SubmitPlan& plan) override;
  Result<std::vector<JobRecord>> Query(const std::vector<std::string>& ids) override;
  Result<std::vector<JobRecord>> List(const JobFilter& filter) override;
  Result<std::vector<std::string>> Resolve(const std::vector<std::string>& refs) override;
  Result<void> Cancel(const std::vector<std::string>& ids, const std::string& reason) override;
  Result<void> Hold(const std::vector<std::string>& ids) override;
  Result<void> Release(const std::vector<std::string>& ids) override;
  Result<void> Remove(const std::vector<std::string>& ids) override;
  Result<bool> Wait(const std::vector<std::string>& ids, WaitUntil until, int64_t timeout_seconds) override;
  Result<std::vector<NodeInfo>> Nodes() override;
  ClusterPolicy* Policies() override { return &policy_; }

 private:
  const Machine& GetMachine(bool fresh = false) const;
  Result<Machine> AskForMachine() const;
  Result<std::string> Call(const JsonWriter& request);
  // With an engine for all users: removes the files from the records of others.
  Result<std::vector<JobRecord>> ShutOthers(Result<std::vector<JobRecord>> records) const;

  Options options_;
  mutable std::optional<Machine> machine_;
  mutable EngineClient client_;
  LocalPolicy policy_;
};

}  // namespace overcap
