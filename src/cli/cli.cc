// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <algorithm>

#include "base/text.h"
#include "cli/args.h"
#include "cli/help.h"
#include "cli/render_help.h"
#include "cli/version_text.h"
#include "control/auto_leftovers.h"
#include "control/open_cluster.h"
#include "sys/process.h"
#include "sys/standard_streams.h"

namespace overcap::cli {
namespace {

void PrintHelp(const ParsedLine& line, std::span<const Command* const> commands, Output& out) {
  const HelpStyle style = {out.terminal().out_color, out.terminal().width};
  out.Write(line.command != nullptr ? RenderHelp(HelpMarkdown(*line.command), style)
                                    : OverviewHelp(commands, line.group, style));
}

Result<int> RunParsed(const ParsedLine& line, std::span<const Command* const> commands, World& world) {
  if (line.globals.version) {
    world.out().Line(StrCat("overcap ", OVERCAP_VERSION));
    return 0;
  }
  if (line.globals.help) {
    PrintHelp(line, commands, world.out());
    return 0;
  }
  if (line.command == nullptr) {
    return Fail(ErrorCode::kUsage, "no command was given", "'overcap --help' begins with examples");
  }
  if (!line.globals.config_file.empty()) world.UseConfigFile(line.globals.config_file);
  world.UseCluster(line.globals.cluster);
  if (!line.command->without_config) OC_TRY_VOID(world.LoadConfig());
  return line.command->run(world, line.args);
}

// The words of `workspace auto` with --on-change that an older version put into the user's crontab, as they
// are read now; empty for every other command line.
std::vector<std::string> WordsOfOldCrontab(std::span<const std::string> words, const std::string& binary) {
  const auto has = [&](std::string_view word) { return std::ranges::find(words, word) != words.end(); };
  if (!has("auto") || !has("--on-change")) return {};
  std::vector<std::string> argv = {binary};
  argv.insert(argv.end(), words.begin(), words.end());
  if (!IsInCrontab(ReadCrontab(Variables::OfThisProcess()), argv)) return {};
  return ReadOldAutoWords(words);
}

}  // namespace

int RunCommandLine(std::span<const std::string> words, std::span<const Command* const> commands,
                   World& world) {
  OpenClosedStreams();
  HeedChildren();
  Output& out = world.out();
  GlobalOptions globals;
  const std::vector<std::string> stored = WordsOfOldCrontab(words, world.binary());
  if (!stored.empty()) words = stored;
  const auto line = ParseLine(words, commands, &globals);
  world.UseCommands(commands);
  out.SetModes(globals.json, globals.quiet, globals.no_color);
  if (out.terminal().err_is_terminal)
    SayWhenClustersAreAway([&out](std::string_view text) { out.Note(text); });
  const auto version = FullVersionFor(words);
  if (version) out.Write(*version);
  auto status = version ? Result<int>(0)
                : line  ? RunParsed(*line, commands, world)
                        : Result<int>(Fail(line.error()));
  if (!status) {
    out.AddFact(&status.error());
    out.PrintError(status.error());
  }
  const auto flushed = out.Flush();
  if (status && !flushed) {
    out.PrintError(flushed.error());
    return ExitStatus(flushed.error().code);
  }
  return status ? *status : ExitStatus(status.error().code);
}

}  // namespace overcap::cli
