// SPDX-License-Identifier: Apache-2.0
#include "control/submitter_environment.h"

#include <algorithm>
#include <array>
#include <map>
#include <unistd.h>

#include "base/text.h"
#include "launch/rank_threads.h"
#include "stores/key_variables.h"

namespace overcap {
namespace {

// What describes the submitter's shell, terminal or session, or the job in which it runs. A name that ends in
// '*' stands for all that begin like it.
constexpr std::array<std::string_view, 46> kStay = {
    // shell
    "SHLVL", "_", "OLDPWD", "PWD", "COLUMNS", "LINES", "PS1", "PROMPT_COMMAND", "BASH_FUNC_*",
    // terminal
    "TERM_PROGRAM*", "TERM_SESSION_ID", "WINDOWID", "WINDOW", "STY", "TMUX*", "ZELLIJ*", "VTE_VERSION",
    "GPG_TTY", "ITERM_*", "KITTY_*", "KONSOLE_*", "WEZTERM_*", "VSCODE_*",
    // session
    "SSH_*", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_SESSION_*", "DBUS_SESSION_BUS_ADDRESS",
    "INVOCATION_ID", "JOURNAL_STREAM", "NOTIFY_SOCKET", "LISTEN_*",
    // another job
    "OVERCAP_*", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_*",
    "CUDA_VISIBLE_DEVICES", "TORCHELASTIC_*", "SLURM_*", "PBS_*", "PMI*", "OMPI_COMM_WORLD_*"};

// Say where Overcap itself looks (a job that submits jobs means the same place), and what the job is to do.
constexpr std::array<std::string_view, 4> kGo = {"OVERCAP_HOME", "OVERCAP_CONFIG", "OVERCAP_SSH",
                                                 "OVERCAP_JOIN_TIMEOUT"};

bool Matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

std::string_view NameOf(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

}  // namespace

bool StaysWithSubmitter(std::string_view name) {
  if (std::find(kGo.begin(), kGo.end(), name) != kGo.end()) return false;
  return std::any_of(kStay.begin(), kStay.end(),
                     [&](std::string_view pattern) { return Matches(pattern, name); });
}

Result<std::vector<std::string>> SubmitterEnvironment(const std::vector<std::string>& environment,
                                                      const std::vector<std::string>& given) {
  std::map<std::string_view, const std::string*> by_name;
  const bool threads_are_ours = ThreadsAreOurs(Variables(environment));  // of the rank that submits
  for (const std::string& variable : environment) {
    const std::string_view name = NameOf(variable);
    if (name.empty() || name.size() == variable.size() || StaysWithSubmitter(name)) continue;
    if (threads_are_ours && name == "OMP_NUM_THREADS") continue;
    by_name[name] = &variable;
  }
  for (const std::string& variable : given) {
    const std::string_view name = NameOf(variable);
    if (name.empty() || name.size() == variable.size()) {
      return Fail(ErrorCode::kUsage,
                  StrCat("--env takes NAME=VALUE, and there is no '=' behind a name in it"),
                  "variables of your shell reach the job without --env");
    }
    by_name[name] = &variable;
  }
  std::vector<std::string> variables;
  for (const auto& [name, variable] : by_name) variables.push_back(*variable);
  return variables;
}

std::vector<std::string> WithoutStoreKeys(std::vector<std::string> variables,
                                          const std::vector<std::string>& given) {
  const auto names = [](const std::vector<std::string>& entries, std::string_view name) {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const std::string& entry) { return NameOf(entry) == name; });
  };
  std::erase_if(variables, [&](const std::string& entry) {
    const std::string_view name = NameOf(entry);
    return IsStoreKeyVariable(name) && !names(given, name);
  });
  return variables;
}

std::string EnvironmentBlob(const std::vector<std::string>& variables) {
  return Join(variables, std::string_view("\0", 1));
}

std::vector<std::string> OwnEnvironment() {
  std::vector<std::string> variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return variables;
}

}  // namespace overcap
