// SPDX-License-Identifier: Apache-2.0
#include "control/launch_runner.h"

#include "launch/foreign/launcher_runner.h"
#include "launch/local/local_runner.h"
#include "launch/ssh/ssh_runner.h"
#include "sys/supervisor.h"

namespace overcap {
namespace {

// A LocalRunner with the supervisor that it needs.
class OwningLocalRunner : public Runner {
 public:
  OwningLocalRunner(const Clock& clock, std::unique_ptr<Supervisor> supervisor)
      : supervisor_(std::move(supervisor)), runner_(clock, supervisor_.get()) {}
  AttemptEnd Run(const Attempt& attempt, RankLogs* logs) override { return runner_.Run(attempt, logs); }
  bool Pause(int64_t us) override { return runner_.Pause(us); }
  int CancelSignal() override { return runner_.CancelSignal(); }

 private:
  std::unique_ptr<Supervisor> supervisor_;
  LocalRunner runner_;
};

Result<std::unique_ptr<Runner>> MakeLocal(const LaunchOptions& options, const LaunchWorld& world) {
  SupervisorTimes times;
  times.grace = options.grace_us;
  OC_TRY(supervisor, Supervisor::Make(world.clock, times, {.hangup_cancels = true, .second_kills = true}));
  return std::unique_ptr<Runner>(new OwningLocalRunner(world.clock, std::move(supervisor)));
}

}  // namespace

Result<std::unique_ptr<Runner>> MakeRunner(const Launcher& launcher, const LaunchOptions& options,
                                           const LaunchWorld& world) {
  if (launcher.flavour == Flavour::kLocal) return MakeLocal(options, world);
  if (launcher.flavour == Flavour::kSsh) return std::unique_ptr<Runner>(new SshRunner(world.clock));
  return std::unique_ptr<Runner>(new LauncherRunner(world.clock, world.random));
}

}  // namespace overcap
