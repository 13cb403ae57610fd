// SPDX-License-Identifier: Apache-2.0
// Builds the real objects and hands them over.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unistd.h>

#include "agent/agent_command.h"
#include "cli/all_commands.h"
#include "cli/cli.h"
#include "control/hidden_commands.h"
#include "control/open_cluster.h"
#include "control/script_step.h"
#include "control/stores/job_stores.h"
#include "launch/local/node.h"
#include "main/daemon_commands.h"
#include "sys/out_of_memory.h"
#include "sys/own_program.h"
#include "sys/user.h"

namespace overcap {
namespace {

// "" when it was removed meanwhile; only commands that need it then fail.
std::string CurrentFolder() {
  const std::unique_ptr<char, void (*)(void*)> path(getcwd(nullptr, 0), std::free);
  return path ? path.get() : "";
}

int Finish(const Result<int>& status, cli::Output& out) {
  if (status) return *status;
  out.PrintError(status.error());
  return ExitStatus(status.error().code);
}

int RunCli(const std::vector<std::string>& words, cli::Output& out) {
  const auto root = OvercapRoot();
  if (!root) return Finish(Fail(root.error()), out);
  PosixClock clock;
  KernelRandom random;
  cli::World::Parts parts;
  parts.root = *root;
  parts.binary = OwnProgram();
  parts.folder = CurrentFolder();
  parts.user = UserName();
  parts.clock = &clock, parts.random = &random, parts.output = &out;
  parts.config_places = DefaultConfigPlaces(parts.folder);
  parts.make_cluster = [](const std::string& name, const cli::World& world) {
    return OpenCluster(name, world.config(), world.root(), world.binary(),
                       [&out = world.out()](const std::string& text) { out.Warn(text); });
  };
  cli::World world(std::move(parts));
  const auto table = cli::AllCommands();
  std::vector<const cli::Command*> commands(table.begin(), table.end());
  commands.insert(commands.end(), {&kDaemon, &kDaemonRecover});
  return cli::RunCommandLine(words, commands, world);
}

}  // namespace
}  // namespace overcap

int main(int argc, char** argv) {
  const auto script_program = overcap::FindScriptProgram(argc > 0 ? argv[0] : "");
  if (argc == 2 && script_program == nullptr &&
      std::strcmp(argv[1], "--version") == 0) {  // it is often asked
    constexpr std::string_view kText = "overcap " OVERCAP_VERSION "\n";
    return write(STDOUT_FILENO, kText.data(), kText.size()) == static_cast<ssize_t>(kText.size()) ? 0 : 1;
  }
  overcap::EndWithALineWithoutMemory();
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  overcap::cli::Output out(stdout, stderr, overcap::cli::DetectTerminal());
  if (script_program != nullptr) return overcap::Finish(script_program(words), out);
  if (const auto hidden = overcap::FindHiddenCommand(words)) return overcap::Finish(hidden(words), out);
  const overcap::AgentSeams seams{overcap::OpenJobStoreHere, overcap::ExpandFolderHere};
  if (!words.empty() && words[0] == "agent")
    return overcap::Finish(overcap::RunAgentCommand(words, seams), out);
  if (words == std::vector<std::string>{"launch-node"}) return overcap::Finish(overcap::RunLaunchNode(), out);
  return overcap::RunCli(words, out);
}
