// SPDX-License-Identifier: Apache-2.0
#include "main/daemon_commands.h"

#include "base/json_writer.h"
#include "cli/commands/daemon_words.h"
#include "cli/world.h"
#include "control/policy_file.h"
#include "control/this_machine.h"
#include "daemon/daemon.h"

namespace overcap {
namespace {

std::string RootOf(const cli::World& world, const cli::Args& args) {
  return args.Has("--root") ? std::string(args.Get("--root")) : world.root();
}

Result<int> Run(cli::World& world, const cli::Args& args) {
  DaemonOptions options;
  options.system = args.Has("--system");
  options.root = RootOf(world, args), options.binary = world.binary();
  OC_TRY(words, cli::SystemWordsOf(args));
  OC_TRY(idle, args.GetInt("--idle-exit", options.system ? 0 : options.idle_exit_seconds, 0, 365 * 86400));
  options.idle_exit_seconds = static_cast<int>(idle);
  options.grace_seconds = static_cast<int>(world.config().jobs.grace_seconds);
  if (args.Has("--print-unit")) return cli::PrintSystemUnit(world, words);
  if (!options.system) {
    OC_TRY(policy, EnginePolicyPath(words.policy_file, world.config()));
    options.policy = std::move(policy);
    options.machine = ThisMachine(world.config().clusters.at("local"), options.root, false);
    return RunDaemon(options);
  }
  SystemSetup setup = FindSystemSetup(words, world.config());
  options.root = words.root, options.socket = words.socket, options.stall_seconds = words.stall_seconds;
  options.slack_seconds = words.slack_seconds;
  options.machine = std::move(setup.machine), options.policy = setup.policy_file;
  return RunDaemon(options);
}

Result<int> Recover(cli::World& world, const cli::Args& args) {
  OC_TRY(told, RecoverJournal(RootOf(world, args), args.Get("--gone")));
  const std::string json = JsonWriter().BeginObject().Field("text", told).EndObject().Take();
  world.out().json() ? world.out().Json(json) : world.out().Line(told);
  return 0;
}

}  // namespace

constinit const cli::Command kDaemon = {
    .name = "daemon",
    .summary = "run the engine in the foreground",
    .usage = "[--root FOLDER] [--idle-exit SECONDS] [--policy FILE] [--system]",
    .flags = cli::kDaemonFlags,
    .max_words = 0,
    .run = Run,
    .group = cli::CommandGroup::kSetup};

constinit const cli::Command kDaemonRecover = {
    .name = "daemon recover",
    .summary = "mend a damaged journal, keep the damaged one beside",
    .usage = "[--root FOLDER] [--gone HOST]",
    .flags = cli::kDaemonRecoverFlags,
    .max_words = 0,
    .run = Recover,
    .group = cli::CommandGroup::kSetup,
    .without_config = true};

}  // namespace overcap
