// SPDX-License-Identifier: Apache-2.0
#include "control/exec.h"

#include <cerrno>
#include <unistd.h>

#include "base/text.h"
#include "sys/posix_files.h"
#include "sys/process.h"

namespace overcap {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::string FolderOf(const JobRecord& record, const std::string& attempt) {
  if (record.spec.snapshot.empty()) return record.spec.workdir;
  const std::string code = attempt + "/code";
  return record.spec.workdir.empty() ? code : StrCat(code, "/", record.spec.workdir);
}

}  // namespace

Result<ExecPlan> PlanExec(const JobRecord& record, std::vector<std::string> argv,
                          const std::string& terminal) {
  if (record.state != JobState::kRunning) {
    return Fail(ErrorCode::kConflict,
                StrCat("job '", record.spec.id, "' is ", JobStateName(record.state), ", not running"),
                IsFinal(record.state) ? StrCat("its folder is ", ShellQuote(record.dir)) : "");
  }
  const std::string attempt = StrCat(record.dir, "/attempt-", record.attempt);
  auto blob = PosixFiles().Read(attempt + "/environment");
  if (!blob) {
    return Fail(ErrorCode::kUnavailable, StrCat("job '", record.spec.id, "' has not come so far yet"),
                "try again in a moment");
  }
  ExecPlan plan{
      .program = {}, .argv = std::move(argv), .environment = {}, .folder = FolderOf(record, attempt)};
  for (std::string& variable : Split(*blob, '\0')) {
    if (!variable.empty()) plan.environment.push_back(std::move(variable));
  }
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
  if (chdir(plan.folder.c_str()) != 0) return ErrnoError(errno, StrCat("cannot go to '", plan.folder, "'"));
  execve(plan.program.c_str(), Pointers(plan.argv).data(), Pointers(plan.environment).data());
  return ErrnoError(errno, StrCat("cannot run '", plan.program, "'"));
}

}  // namespace overcap
