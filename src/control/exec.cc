// SPDX-License-Identifier: Apache-2.0
#include "control/exec.h"

#include <algorithm>
#include <cerrno>
#include <unistd.h>

#include "base/text.h"
#include "control/others_job.h"
#include "sys/posix_files.h"
#include "sys/process.h"
#include "sys/user.h"

namespace overcap {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string RankFolder(const JobSpec& spec, const std::string& attempt_folder) {
  if (spec.snapshot.empty()) return spec.workdir;
  const std::string code = attempt_folder + "/code";
  return spec.workdir.empty() ? code : StrCat(code, "/", spec.workdir);
}

Result<std::vector<std::string>> RankVariables(const JobSpec& spec, const std::string& attempt_folder) {
  auto blob = PosixFiles().Read(attempt_folder + "/environment");
  if (!blob) {
    return Fail(ErrorCode::kUnavailable, StrCat("job '", spec.id, "' has not come so far yet"),
                "try again in a moment");
  }
  std::vector<std::string> variables = Split(*blob, '\0');
  std::erase(variables, "");
  // Outside of the job's control group CUDA counts all GPUs of the machine.
  constexpr std::string_view kIndices = "OVERCAP_GPU_INDICES=", kVisible = "CUDA_VISIBLE_DEVICES=";
  const auto indices = std::find_if(variables.begin(), variables.end(),
                                    [&](const std::string& entry) { return entry.starts_with(kIndices); });
  if (indices == variables.end()) return variables;
  const std::string visible = StrCat(kVisible, indices->substr(kIndices.size()));
  std::replace_if(
      variables.begin(), variables.end(),
      [&](const std::string& entry) { return entry.starts_with(kVisible); }, visible);
  return variables;
}

Result<ExecPlan> PlanExec(const JobRecord& record, std::vector<std::string> argv,
                          const std::string& terminal) {
  OC_TRY_VOID(CheckNotOthers(record));
  if (record.state != JobState::kRunning) {
    return Fail(ErrorCode::kConflict,
                StrCat("job '", record.spec.id, "' is ", JobStateName(record.state), ", not running"),
                IsFinal(record.state) ? StrCat("its folder is ", ShellQuote(record.dir)) : "");
  }
  if (argv.empty()) argv = {LoginShell()};
  const std::string attempt = StrCat(record.dir, "/attempt-", record.attempt);
  OC_TRY(variables, RankVariables(record.spec, attempt));
  ExecPlan plan{.program = {},
                .argv = std::move(argv),
                .environment = std::move(variables),
                .folder = RankFolder(record.spec, attempt)};
  if (!terminal.empty()) {
    std::erase_if(plan.environment,
                  [](const std::string& variable) { return variable.starts_with("TERM="); });
    plan.environment.push_back("TERM=" + terminal);
  }
  auto program = ResolveProgram(plan.argv[0], PathOf(plan.environment), plan.folder);
  if (!program) return Fail(ErrorCode::kUsage, program.error().message, program.error().hint);
  plan.program = std::move(*program);
  return plan;
}

Error Become(const ExecPlan& plan) {
  if (!plan.folder.empty() && chdir(plan.folder.c_str()) != 0)
    return ErrnoError(errno, StrCat("cannot go to '", plan.folder, "'"));
  execve(plan.program.c_str(), Pointers(plan.argv).data(), Pointers(plan.environment).data());
  return ErrnoError(errno, StrCat("cannot run '", plan.program, "'"));
}

}  // namespace overcap
