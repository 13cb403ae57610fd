// SPDX-License-Identifier: Apache-2.0
#include "control/enter.h"

#include <algorithm>

#include "base/text.h"
#include "control/exec.h"
#include "control/submitter_environment.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/strangers_files.h"
#include "sys/user.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr std::string_view kOfTheConnection[] = {"TERM", "LANG", "LANGUAGE", "DISPLAY", "XAUTHORITY", "TZ"};

std::string_view NameOf(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

bool IsBeginning(std::string_view word) {
  return word.ends_with('_');
}

bool Fits(std::string_view name, const std::vector<std::string>& words, bool beginnings) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    return IsBeginning(word) == beginnings && (beginnings ? name.starts_with(word) : name == word);
  });
}

bool OfConnection(std::string_view name) {
  return name.starts_with("SSH_") || name.starts_with("LC_") ||
         std::find(std::begin(kOfTheConnection), std::end(kOfTheConnection), name) !=
             std::end(kOfTheConnection);
}

Result<void> TakeValue(std::string_view flag, const std::string& value, EnterOptions* options) {
  if (flag == "--job") {
    options->job = value;
  } else if (flag == "--attempt") {
    const auto number = ParseInt(value);
    if (!number || *number < 1 || *number > 1'000'000)
      return Fail(ErrorCode::kUsage, StrCat("enter: '", value, "' is no attempt"));
    options->attempt = static_cast<int>(*number);
  } else if (flag == "--here") {
    options->here = Split(value, ',');
  } else if (flag == "--environment") {
    options->environment = value;
  } else if (flag == "--folder") {
    options->folder = value;
  } else if (flag == "--keys") {
    options->keys = value;
  } else {
    return Fail(ErrorCode::kUsage, StrCat("enter: unknown flag ", Quoted(flag)));
  }
  return {};
}

// What the shell is called tells it what kind it is: "-bash" reads the files of a login.
std::vector<std::string> ShellWords(const std::string& shell, bool login) {
  return {StrCat(login ? "-" : "", shell.substr(shell.rfind('/') + 1))};
}

// What sshd was asked to run is a line for the user's shell, as everywhere with ssh.
std::vector<std::string> SshWords(const std::string& shell, std::string_view line) {
  std::vector<std::string> words = ShellWords(shell, false);
  if (!line.empty()) words.insert(words.end(), {"-c", std::string(line)});
  return words;
}

Result<void> ChooseProgram(const EnterOptions& options, const Variables& own, Replacement* plan) {
  const std::string shell = LoginShell();
  // `scp FILE HOST:` lands at home, as on every host.
  if (options.ssh && CarriesFiles(own.Get("SSH_ORIGINAL_COMMAND")))
    plan->folder = HomeFolder().value_or(plan->folder);
  if (options.ssh || options.command.empty()) {
    plan->program = shell;
    plan->argv =
        options.ssh ? SshWords(shell, own.Get("SSH_ORIGINAL_COMMAND")) : ShellWords(shell, options.login);
    return {};
  }
  plan->argv = options.command;
  auto program =
      ResolveProgram(plan->argv[0], PathOf(plan->environment), plan->folder.empty() ? "." : plan->folder);
  if (!program) return Fail(ErrorCode::kUsage, program.error().message, program.error().hint);
  plan->program = std::move(*program);
  return {};
}

Result<Replacement> PlaceFromFile(const EnterOptions& options, const std::vector<std::string>& own) {
  OC_TRY(blob, PosixFiles().Read(options.environment));
  std::vector<std::string> variables = Split(blob, '\0');
  std::erase(variables, "");
  return Replacement{.program = {},
                     .argv = {},
                     .environment = options.ssh ? SshVariables(variables, own) : std::move(variables),
                     .folder = options.folder};
}

// Of another user's job it would be that user's programs and files that this one gets into.
Result<void> CheckFolder(const std::string& job) {
  if (!StrangerOf(job)) return {};
  return Fail(ErrorCode::kDenied, StrCat("the job's folder ", Quoted(job, 500),
                                         " belongs to another user, who alone can enter the job"));
}

Result<Replacement> PlaceOfJob(const EnterOptions& options, const std::vector<std::string>& own) {
  OC_TRY_VOID(CheckFolder(options.job));
  OC_TRY(text, PosixFiles().Read(options.job + "/spec.json"));
  OC_TRY(spec, SpecFromJson(text));
  const std::string attempt = StrCat(options.job, "/attempt-", options.attempt);
  OC_TRY(variables, RankVariables(spec, attempt));
  Variables merged(EnterVariables(variables, own, options.here));
  const std::string terminal(Variables(own).Get("TERM"));
  if (!terminal.empty()) merged.Set("TERM", terminal);
  const std::string folder = RankFolder(spec, attempt);
  return Replacement{.program = {}, .argv = {}, .environment = merged.entries(), .folder = folder};
}

}  // namespace

Result<EnterOptions> ParseEnterOptions(const std::vector<std::string>& words) {
  EnterOptions options;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      options.command.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (word == "--login" || word == "--ssh") {
      (word == "--login" ? options.login : options.ssh) = true;
      continue;
    }
    if (i + 1 == words.size())
      return Fail(ErrorCode::kUsage, StrCat("enter: ", Quoted(word), " needs a value"));
    OC_TRY_VOID(TakeValue(word, words[++i], &options));
  }
  if (!options.job.empty() && options.attempt == 0)
    return Fail(ErrorCode::kUsage, "enter: --job needs --attempt");
  return options;
}

std::vector<std::string> EnterVariables(const std::vector<std::string>& of_job,
                                        const std::vector<std::string>& of_here,
                                        const std::vector<std::string>& here) {
  Variables merged;
  for (const std::string& entry : of_job) {
    const std::string_view name = NameOf(entry);
    if (!Fits(name, here, true))
      merged.Set(name, std::string_view(entry).substr(std::min(name.size() + 1, entry.size())));
  }
  for (const std::string& entry : of_here) {
    const std::string_view name = NameOf(entry);
    if (Fits(name, here, true) || Fits(name, here, false))
      merged.Set(name, std::string_view(entry).substr(std::min(name.size() + 1, entry.size())));
  }
  return merged.entries();
}

bool CarriesFiles(std::string_view line) {
  const std::string_view program = line.substr(0, line.find(' '));
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return name == "sftp-server" || name == "internal-sftp" || name == "scp" || name == "rsync";
}

std::vector<std::string> SshVariables(const std::vector<std::string>& of_job,
                                      const std::vector<std::string>& of_sshd) {
  std::vector<std::string> merged;
  for (const std::string& entry : of_job) {
    const std::string_view name = NameOf(entry);
    if (!name.starts_with("SSH_") && name != "TERM") merged.push_back(entry);
  }
  Variables variables(std::move(merged));
  for (const std::string& entry : of_sshd) {
    const std::string_view name = NameOf(entry);
    if (OfConnection(name))
      variables.Set(name, std::string_view(entry).substr(std::min(name.size() + 1, entry.size())));
  }
  return variables.entries();
}

Result<Replacement> PlanPlace(const EnterOptions& options, const std::vector<std::string>& own) {
  if (!options.environment.empty()) return PlaceFromFile(options, own);
  if (!options.job.empty()) return PlaceOfJob(options, own);
  return Replacement{.program = {}, .argv = {}, .environment = own, .folder = options.folder};
}

Result<int> RunEnter(const std::vector<std::string>& words) {
  OC_TRY(options, ParseEnterOptions({words.begin() + 1, words.end()}));
  const std::vector<std::string> own = OwnEnvironment();
  OC_TRY(plan, PlanPlace(options, own));
  OC_TRY_VOID(ChooseProgram(options, Variables(own), &plan));
  return Fail(Become(plan));
}

}  // namespace overcap
