// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "cli/commands/commands.h"
#include "cli/world.h"
#include "control/engine_call.h"

namespace overcap::cli {
namespace {

constexpr int kPatienceSeconds = 30;
constexpr Flag kDaemonStopFlags[] = {{"--system", "", "", "the engine that all users of this machine share"}};

Result<int> RunDaemonStop(World& world, const Args& args) {
  const auto stopped = StopEngine(EngineSocket(world.root(), args.Has("--system")), kPatienceSeconds);
  const bool none = !stopped && stopped.error().code == ErrorCode::kNotFound;
  if (!stopped && !none) return Fail(stopped.error());
  if (world.out().json()) {
    world.out().Json(JsonWriter().BeginObject().Field("stopped", !none).EndObject().Text());
  } else if (!world.out().quiet()) {
    world.out().Line(none ? "no engine was running"
                          : "the engine has ended; running jobs go on and are found again");
  }
  return 0;
}

}  // namespace

constinit const Command kDaemonStop = {.name = "daemon stop",
                                       .summary = "end the engine; running jobs go on",
                                       .usage = "[--system]",
                                       .flags = kDaemonStopFlags,
                                       .max_words = 0,
                                       .run = RunDaemonStop,
                                       .group = CommandGroup::kSetup,
                                       .without_config = true};

}  // namespace overcap::cli
