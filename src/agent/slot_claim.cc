// SPDX-License-Identifier: Apache-2.0
#include "agent/slot_claim.h"

#include <cerrno>
#include <cstdio>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

constexpr int kMostAttempts = 1'000'000;

bool IsSameStart(const std::string& folder, const Claim& claim) {
  const auto text = PosixFiles().Read(folder + "/agent-0.claim");
  const auto theirs = text ? ClaimFromJson(*text) : Result<Claim>(Fail(text.error()));
  return theirs && theirs->slurm_id == claim.slurm_id && theirs->slurm_restart == claim.slurm_restart;
}

// A folder with a claim and a report in it, under a name that nobody looks for.
Result<ReportFile> MakeDraft(const std::string& folder, const Claim& claim) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(folder));
  OC_TRY(report, ReportFile::Make(folder + "/agent-0.jsonl"));
  OC_TRY_VOID(files.CreateExclusive(folder + "/agent-0.claim", ClaimToJson(claim) + "\n"));
  return report;
}

}  // namespace

Claim OwnClaim() {
  Claim claim;
  claim.pid = getpid();
  if (const auto self = Identify(getpid())) claim.start_ticks = static_cast<int64_t>(self->start_ticks);
  claim.boot_id = BootId();
  claim.host = OwnHost();
  return claim;
}

Result<std::optional<ReportFile>> ClaimSlot(const AttemptFolder& attempt, const Claim& claim) {
  PosixFiles files;
  // The room for the report first, under a name of our own.
  const std::string draft = StrCat(attempt.Report(), ".", claim.pid, claim.slurm_id > 0 ? OwnHostName() : "");
  auto made = ReportFile::Make(draft);
  if (!made) {
    (void)files.Remove(draft);
    return Fail(made.error());
  }
  const Result<void> claimed = files.CreateExclusive(attempt.Claim(), ClaimToJson(claim));
  if (!claimed) (void)files.Remove(draft);
  if (!claimed && claimed.error().code == ErrorCode::kConflict) return std::optional<ReportFile>();
  if (!claimed) return Fail(claimed.error());
  OC_TRY_VOID(files.Rename(draft, attempt.Report()));
  return std::optional<ReportFile>(*std::move(made));
}

Result<std::optional<ClaimedAttempt>> ClaimNextAttempt(const std::string& job_dir, const Claim& claim,
                                                       int first) {
  PosixFiles files;
  const std::string draft = StrCat(job_dir, "/.attempt-", OwnHostName(), "-", claim.pid);
  (void)files.RemoveTree(draft);
  auto report = MakeDraft(draft, claim);
  Result<void> failed = report ? Result<void>() : Result<void>(Fail(report.error()));
  for (int number = first; failed && number < kMostAttempts;) {
    const std::string folder = StrCat(job_dir, "/attempt-", number);
    if (!files.Exists(folder)) {
      if (rename(draft.c_str(), folder.c_str()) == 0)
        return std::optional<ClaimedAttempt>({number, *std::move(report)});
      if (errno != ENOTEMPTY && errno != EEXIST)
        failed = Fail(ErrnoError(errno, StrCat("cannot make '", folder, "'")));
      continue;  // somebody was faster: look at it
    }
    if (IsSameStart(folder, claim)) break;
    ++number;
  }
  (void)files.RemoveTree(draft);
  if (!failed) return Fail(failed.error());
  return std::optional<ClaimedAttempt>();
}

}  // namespace overcap
