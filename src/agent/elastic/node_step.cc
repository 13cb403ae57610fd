// SPDX-License-Identifier: Apache-2.0
#include "agent/elastic/node_step.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "agent/elastic/node_command.h"
#include "base/text.h"
#include "sys/fd.h"
#include "sys/own_program.h"
#include "sys/variables.h"

namespace overcap {
namespace {

Result<void> WriteTo(const std::string& path) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot make log '", path, "'")));
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    if (dup2(file.Get(), fd) < 0) return Fail(ErrnoError(errno, "cannot write to a log"));
  }
  return {};
}

}  // namespace

Result<int> RunNodeStep(const std::vector<std::string>& words) {
  const auto task = ParseInt(Variables::OfThisProcess().Get("SLURM_PROCID"));
  if (words.size() < 2 || words[1] != "launch" || !task || *task < 0 || *task > 1'000'000)
    return Fail(ErrorCode::kUsage, "agent node: this is no task of an elastic job");
  const int node = static_cast<int>(*task) + 1;  // number 0 is not of the step
  std::vector<std::string> argv = WordsOfNode({words.begin() + 1, words.end()}, words[0], node);
  argv.insert(argv.begin(), "overcap");
  OC_TRY_VOID(WriteTo(StrCat(words[0], "/rank-", node, ".log")));
  std::vector<char*> raw;
  for (std::string& word : argv) raw.push_back(word.data());
  raw.push_back(nullptr);
  execv(OwnProgram().c_str(), raw.data());
  return Fail(ErrnoError(errno, "cannot become 'overcap launch'"));
}

}  // namespace overcap
