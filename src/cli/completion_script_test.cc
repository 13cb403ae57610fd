// SPDX-License-Identifier: Apache-2.0
#include "cli/completion_script.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/all_commands.h"

namespace overcap::cli {
namespace {

// Runs bash on `script` and returns what it prints; "" with status -1 when it fails.
struct Ran {
  int status = -1;
  std::string out;
};
Ran Bash(const std::string& script, const std::vector<std::string>& flags) {
  char name[] = "/tmp/overcap-completion-XXXXXX";
  const std::string folder = mkdtemp(name);
  std::ofstream(folder + "/script") << script;
  std::vector<std::string> words = {"bash", "--norc"};
  words.insert(words.end(), flags.begin(), flags.end());
  words.push_back(folder + "/script");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDOUT_FILENO);
    execvp("bash", argv.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  Ran ran;
  char buffer[4096];
  for (ssize_t got; (got = read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
    ran.out.append(buffer, static_cast<size_t>(got));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  std::filesystem::remove_all(folder);
  return ran;
}

constexpr Flag kSubmitFlags[] = {{"--gpus", "-n", "GPUS", "how many"}, {"--hold", "", "", "wait"}};
constinit const Command kSubmit = {.name = "submit", .flags = kSubmitFlags, .takes_command = true};
constinit const Command kQuery = {.name = "query", .job_words = true};
constexpr Flag kLsFlags[] = {{"--status", "", "STATES", "only these"}, {"--rank", "", "RANKS", "which"}};
constinit const Command kLs = {.name = "ls", .flags = kLsFlags};
constinit const Command kExec = {.name = "exec", .takes_command = true, .job_words = true};
constinit const Command kStatus = {.name = "daemon status"};
constinit const Command kStop = {.name = "daemon stop"};
constexpr const Command* kCommands[] = {&kSubmit, &kQuery, &kLs, &kExec, &kStatus, &kStop};

// What pressing TAB at the end of `words` offers.
std::string Offered(const std::string& words) {
  return Bash(BashCompletion(kCommands) + "overcap() { echo job_1 job_2; }\nCOMP_WORDS=(" + words +
                  ")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_overcap\necho \"${COMPREPLY[*]}\"\n",
              {})
      .out;
}

TEST(Completion, BashFindsTheScriptOfAllCommandsWellFormed) {
  EXPECT_EQ(Bash(BashCompletion(AllCommands()), {"-n"}).status, 0);
}

TEST(Completion, OffersCommandsFlagsAndJobs) {
  EXPECT_EQ(Offered("overcap ''"), "daemon exec ls query submit\n");
  EXPECT_EQ(Offered("overcap sub"), "submit\n");
  EXPECT_EQ(Offered("overcap -n 8 su"), "submit\n");
  EXPECT_EQ(Offered("overcap daemon st"), "status stop\n");
  EXPECT_EQ(Offered("overcap submit --g"), "--gpus\n");
  EXPECT_EQ(Offered("overcap query x -"),
            "--json --help -h --version --cluster -c --config --no-color --quiet -q\n");
  EXPECT_EQ(Offered("overcap query job"), "job_1 job_2\n");
}

TEST(Completion, AFlagOffersItsOwnValuesOnly) {
  EXPECT_EQ(Offered("overcap ls --status c"), "cancelled\n");
  EXPECT_EQ(Offered("overcap ls --status failed,s"), "failed,succeeded\n");
  EXPECT_EQ(Offered("overcap ls --rank ''"), "\n");
}

TEST(Completion, ACommandLineIsNotOurs) {
  EXPECT_EQ(Offered("overcap submit pyth --g"), "\n");
  EXPECT_EQ(Offered("overcap submit python3 ec"), "\n");
  EXPECT_NE(Offered("overcap submit ech").find("echo"), std::string::npos);
  EXPECT_EQ(Offered("overcap exec job"), "job_1 job_2\n");
  EXPECT_NE(Offered("overcap exec job_1 -- ech").find("echo"), std::string::npos);
  EXPECT_EQ(Offered("overcap exec job_1 -- cat job"), "\n");
}

TEST(Completion, TheZshScriptNamesEveryCommand) {
  const std::string script = ZshCompletion(AllCommands());
  EXPECT_TRUE(script.starts_with("#compdef overcap\n"));
  for (const Command* command : AllCommands()) {
    EXPECT_NE(script.find("'" + std::string(command->name) + "'"), std::string::npos) << command->name;
  }
}

}  // namespace
}  // namespace overcap::cli
