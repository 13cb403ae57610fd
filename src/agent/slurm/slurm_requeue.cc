// SPDX-License-Identifier: Apache-2.0
#include "agent/slurm/slurm_requeue.h"

#include <algorithm>
#include <chrono>
#include <poll.h>

#include "base/text.h"
#include "sys/capture_output.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::chrono::milliseconds kCallTimeout{20'000};
constexpr int kTries = 4;
constexpr int kPauseMs = 5'000;

std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return ToUtf8(Trim(text));
}

Result<void> Scontrol(std::vector<std::string> words, const std::vector<std::string>& env) {
  SpawnRequest request;
  request.argv = {"scontrol"};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  request.env = env;
  request.cwd = "/";
  OC_TRY(answer, CaptureOutput(request, kCallTimeout));
  if (answer.end.ok()) return {};
  const std::string said = OneLine(answer.output);
  // "Unable to contact slurm controller", "Socket timed out on send/recv operation", munge's words.
  const bool refused = said.find("for job") != std::string::npos ||
                       said.find("Invalid") != std::string::npos || said.find("denied") != std::string::npos;
  return Fail(refused ? ErrorCode::kDenied : ErrorCode::kUnavailable,
              StrCat("scontrol ", words[0], ": ", said.empty() ? "it failed without a word" : said));
}

Result<void> Ask(const RequeueRequest& request) {
  if (request.allow_first)
    OC_TRY_VOID(Scontrol({"update", StrCat("JobId=", request.name), "Requeue=1"}, request.tools));
  Result<void> asked = Scontrol({"requeue", request.name}, request.tools);
  // It waits: Slurm has done so itself, or an answer to us was lost.
  if (!asked && asked.error().message.find("pending") != std::string::npos) return {};
  return asked;
}

}  // namespace

Result<void> RequeueOnce(const RequeueRequest& request) {
  const Result<void> marked = PosixFiles().CreateExclusive(request.mark, request.why + "\n");
  if (!marked && marked.error().code == ErrorCode::kConflict) return {};
  OC_TRY_VOID(marked);
  for (int i = 1;; ++i) {
    Result<void> asked = Ask(request);
    if (asked || asked.error().code == ErrorCode::kDenied || i == kTries) return asked;
    (void)poll(nullptr, 0, kPauseMs);
  }
}

void ForbidRequeue(const std::string& name, const std::vector<std::string>& tools) {
  (void)Scontrol({"update", StrCat("JobId=", name), "Requeue=0"}, tools);
}

}  // namespace overcap
