// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap::cli {
namespace {

constexpr Flag kSubmitFlags[] = {{"--gpus", "-n", "GPUS", "how many"},
                                 {"--env", "", "K=V", "a variable", true},
                                 {"--requeue", "", "", "start again"},
                                 {"--no-requeue", "", "", "do not"}};
constexpr Flag kLogsFlags[] = {
    {"--follow", "-f", "", "go on"}, {"--all", "-a", "", "all"}, {"--tail", "-t", "N", "last lines"}};
constexpr Flag kGcFlags[] = {{"--file", "-f", "FILE", "another -f, with a value"},
                             {"--cpus", "-c", "N", "a -c of its own"}};
constexpr std::string_view kLogsAliases[] = {"l"};
constexpr FlagSynonym kSubmitSynonyms[] = {{"-np", "-n"}, {"--cards", "--gpus"}};
constinit const Command kSubmit = {.name = "submit",
                                   .usage = "CMD",
                                   .flags = kSubmitFlags,
                                   .min_words = 1,
                                   .takes_command = true,
                                   .synonyms = kSubmitSynonyms};
constinit const Command kLogs = {.name = "logs",
                                 .aliases = kLogsAliases,
                                 .usage = "ID",
                                 .flags = kLogsFlags,
                                 .min_words = 1,
                                 .max_words = 1};
constinit const Command kGc = {
    .name = "gc", .flags = kGcFlags, .max_words = 0, .other_flags = "others are the broom's"};
constinit const Command kStatus = {.name = "daemon status", .max_words = 0};
constinit const Command kStop = {.name = "daemon stop", .max_words = 0};
constexpr const Command* kCommands[] = {&kSubmit, &kLogs, &kGc, &kStatus, &kStop};

using Words = std::vector<std::string>;

// The line as it was understood, in one string.
std::string Describe(const Words& words) {
  const auto line = ParseLine(words, kCommands, nullptr);
  if (!line)
    return StrCat("error: ", line.error().message, line.error().hint.empty() ? "" : " | ", line.error().hint);
  std::string out =
      line->command != nullptr ? std::string(line->command->name) : StrCat("(", line->group, ")");
  for (const auto& [name, value] : line->args.flags_) out += StrCat(" ", name, "=", value);
  for (const std::string& word : line->args.words()) out += StrCat(" <", word, ">");
  return out;
}

TEST(Args, LinesAreUnderstoodAsTheTableSays) {
  const std::vector<std::pair<Words, std::string>> table = {
      {{"submit", "-n", "8", "train.py"}, "submit --gpus=8 <train.py>"},
      {{"-n", "8", "submit", "train.py"}, "submit --gpus=8 <train.py>"},
      {{"-n8", "submit", "train.py"}, "submit --gpus=8 <train.py>"},
      {{"--gpus=8", "submit", "train.py"}, "submit --gpus=8 <train.py>"},
      {{"submit", "--gpus", "8", "train.py"}, "submit --gpus=8 <train.py>"},
      {{"submit", "--env", "A=1", "--env=B=2", "x"}, "submit --env=A=1 --env=B=2 <x>"},
      {{"submit", "--env=", "x"}, "submit --env= <x>"},
      {{"-c", "sky", "submit", "x"}, "submit --cluster=sky <x>"},
      {{"submit", "-c", "sky", "x"}, "submit --cluster=sky <x>"},
      {{"-csky", "gc", "-c", "4"}, "gc --cluster=sky --cpus=4"},
      {{"gc", "-c4", "--cluster", "sky"}, "gc --cpus=4 --cluster=sky"},
      {{"submit", "x", "-n", "8", "--json", "--help", "--", "y  z", ""},
       "submit <x> <-n> <8> <--json> <--help> <--> <y  z> <>"},
      {{"submit", "--", "-n", "--", "x"}, "submit <-n> <--> <x>"},
      {{"submit", "-n", "-1", "x"}, "submit --gpus=-1 <x>"},
      {{"submit", "logs"}, "submit <logs>"},
      {{"logs", "-f", "abc"}, "logs --follow= <abc>"},
      {{"logs", "abc", "-f"}, "logs --follow= <abc>"},
      {{"-f", "logs", "abc"}, "logs --follow= <abc>"},
      {{"-f", "gc", "gc"}, "gc --file=gc"},
      {{"l", "-fa", "abc"}, "logs --follow= --all= <abc>"},
      {{"logs", "-t5", "-"}, "logs --tail=5 <->"},
      {{"logs", "--", "-f"}, "logs <-f>"},
      {{"--json", "-c", "big", "logs", "x", "--quiet"}, "logs --json= --cluster=big --quiet= <x>"},
      {{"daemon", "status", "--json"}, "daemon status --json="},
      {{"daemon", "--json", "stop"}, "daemon stop --json="},
      {{"--help"}, "() --help="},
      {{}, "()"},
      {{"logs", "--help"}, "logs --help="},
      {{"help", "logs"}, "logs --help="},
      {{"help"}, "() --help="},
      {{"daemon", "--help"}, "(daemon) --help="},
  };
  for (const auto& [words, expected] : table) EXPECT_EQ(Describe(words), expected) << Join(words, " ");
}

TEST(Args, WrongLinesSayWhatIsWrongAndWhatIsNear) {
  const std::vector<std::pair<Words, std::string>> table = {
      {{"sbmit", "x"}, "error: unknown command 'sbmit' | did you mean 'overcap submit'?"},
      {{"store", "lock", "s3://b/x", "--", "y"},
       "error: unknown command 'store lock' | it was removed; on a file system that the nodes share flock(1) "
       "does the same"},
      {{"frobnicate"}, "error: unknown command 'frobnicate' | 'overcap --help' lists the commands"},
      {{"submit", "--gpu", "8", "x"}, "error: unknown flag '--gpu' of 'submit' | did you mean '--gpus'?"},
      {{"--gpsu", "submit", "x"}, "error: unknown flag '--gpsu' of 'submit' | did you mean '--gpus'?"},
      {{"submit", "-x", "y"},
       "error: unknown flag '-x' of 'submit' | 'overcap submit --help' lists its flags"},
      {{"-n", "8", "logs", "x"},
       "error: unknown flag '-n' of 'logs' | 'overcap logs --help' lists its flags"},
      {{"submit", "-np", "8", "x"}, "error: unknown flag '-np' of 'submit' | did you mean '-n'?"},
      {{"submit", "--cards=8", "x"}, "error: unknown flag '--cards' of 'submit' | did you mean '--gpus'?"},
      {{"gc", "-x"},
       "error: unknown flag '-x' of 'gc' | 'overcap gc --help' lists its flags (others are the broom's)"},
      {{"gc", "--fil"},
       "error: unknown flag '--fil' of 'gc' | did you mean '--file'? (others are the broom's)"},
      {{"--jsn"}, "error: unknown flag '--jsn' | did you mean '--json'?"},
      {{"logs", "x", "--tail"}, "error: flag '--tail' needs a value | write '--tail N'"},
      {{"logs", "--follow=yes", "x"}, "error: flag '--follow' takes no value"},
      {{"logs", "-ft", "x"}, "error: flag '-t' needs a value and cannot stand in '-ft'"},
      {{"logs", "-fx", "x"}, "error: unknown flag '-x' of 'logs' | 'overcap logs --help' lists its flags"},
      {{"submit"}, "error: no command was given | usage: overcap submit CMD"},
      {{"submit", "-n", "true"}, "error: -n needs a whole number, not 'true'"},
      {{"logs", "--tail=", "x"}, "error: --tail needs a whole number, not ''"},
      {{"logs"}, "error: 'logs' needs something to work on | usage: overcap logs ID"},
      {{"gc", "x"}, "error: 'gc' does not know what to do with 'x' | usage: overcap gc"},
      {{"tail", "x"}, "error: unknown command 'tail' | did you mean 'overcap logs'?"},
      {{"mpirun", "x"},
       "error: unknown command 'mpirun' | 'overcap --help' lists the commands"},  // no launch here
      {{"run", "x"}, "error: unknown command 'run' | did you mean 'overcap submit'?"},
      {{"sub", "x"}, "error: unknown command 'sub' | did you mean 'overcap submit'?"},
      {{"logs", "a", "b"}, "error: 'logs' does not know what to do with 'b' | usage: overcap logs ID"},
      {{"daemon"}, "error: 'daemon' needs one more word | one of: status, stop"},
      {{"daemon", "statsu"},
       "error: unknown command 'daemon statsu' | did you mean 'overcap daemon status'?"},
      {{"daemon", "status", "--jsno"},
       "error: unknown flag '--jsno' of 'daemon status' | did you mean '--json'?"},
  };
  for (const auto& [words, expected] : table) EXPECT_EQ(Describe(words), expected) << Join(words, " ");
}

TEST(Args, ModesAreKnownAlsoWhenTheLineIsWrong) {
  GlobalOptions globals;
  EXPECT_FALSE(ParseLine(Words{"--json", "logs", "--wrong"}, kCommands, &globals));
  EXPECT_TRUE(globals.json);
}

TEST(Args, TheLastOfTwoContraryFlagsCounts) {
  const auto line = ParseLine(Words{"submit", "--requeue", "--no-requeue", "x"}, kCommands, nullptr);
  ASSERT_TRUE(line);
  EXPECT_EQ(line->args.LastOf({"--requeue", "--no-requeue"}), "--no-requeue");
  EXPECT_EQ(line->args.LastOf({"--gpus"}), "");
}

TEST(Args, NumbersAreHeldToTheirRange) {
  const auto gpus = [](const char* value) {
    const auto line = ParseLine(Words{"submit", "-n", value, "x"}, kCommands, nullptr);
    const auto number = line->args.GetInt("--gpus", 0, 1, 64);
    return number ? std::to_string(*number) : number.error().message;
  };
  EXPECT_EQ(gpus("8"), "8");
  EXPECT_EQ(gpus("0"), "-n must be at least 1, not 0");
  EXPECT_EQ(gpus("65"), "-n must be at most 64, not 65");
}

}  // namespace
}  // namespace overcap::cli
