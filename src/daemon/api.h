// SPDX-License-Identifier: Apache-2.0
// The requests of docs/formats/api.md: JSON in, JSON out, over an Engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "daemon/asker.h"
#include "daemon/engine.h"
#include "daemon/installed_policy.h"

namespace overcap {

// A request that is answered later: when all jobs have come so far, or at the deadline.
struct WaitRequest {
  std::vector<std::string> ids;
  bool until_started = false;
  int64_t deadline_us = 0;  // monotonic
  Asker asker;
  std::optional<std::string> problem;  // the Engine::Problem() that the client knows; nullopt: not asked
  mutable size_t first_open = 0;       // all jobs before it are done
};

struct Handled {
  std::string reply;  // unless `wait`
  std::optional<WaitRequest> wait;
  bool stop = false;  // end the engine after this reply
};

// Facts about the process that `status` shows.
struct EngineInfo {
  std::string version;
  int pid = 0;
  std::string root;
  std::string socket;
  std::string gpu_problem = {};  // why jobs can open others' GPUs; "": they cannot, or it is one user's
  int64_t started_us = 0;        // wall
  int64_t started_monotonic_us = 0;
};

class Api {
 public:
  // `policy`: nullptr where none can be installed.
  Api(Engine& engine, const Clock& clock, EngineInfo info, InstalledPolicy* policy = nullptr)
      : engine_(engine), clock_(clock), info_(std::move(info)), policy_file_(policy) {}

  // Never fails: what is wrong with the request is in the reply.
  Handled Handle(std::string_view request, const Asker& asker = {});
  // The reply once it is due; nullopt: go on waiting.
  std::optional<std::string> Check(const WaitRequest& wait) const;

 private:
  struct Op;
  friend struct ApiOps;
  std::string WithProblem(std::string reply) const;
  Engine& engine_;
  const Clock& clock_;
  EngineInfo info_;
  InstalledPolicy* policy_file_;
};

std::string ErrorReply(const Error& error);

}  // namespace overcap
