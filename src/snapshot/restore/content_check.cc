// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/content_check.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "snapshot/restore/content_prover.h"
#include "snapshot/restore/thread_team.h"

namespace overcap {
namespace {

class Checker {
 public:
  Checker(const WantedTree& tree, const TargetFolder& target, const SurveyRequest& request,
          const GetMeta& get, Survey* survey)
      : tree_(tree), request_(request), survey_(*survey), fds_(tree, target.fd.Get()), prover_(get) {}

  void Check(uint32_t entry) { survey_.states[entry] = Judge(entry); }

 private:
  EntryState Judge(uint32_t entry) {
    const int folder = fds_.Get(tree_[entry].parent);
    if (folder < 0) return EntryState::kReplace;
    const Fd fd(openat(folder, tree_.Name(entry), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct statx before, after;
    if (!fd || !Stat(fd.Get(), &before) || SeenStamp::Of(before) != survey_.stamps[entry])
      return EntryState::kReplace;
    if (!prover_.IsContentOf(fd.Get(), tree_[entry])) return EntryState::kReplace;
    const FoundXattrs xattrs = ReadXattrs(fd.Get(), request_.rules);
    if (!Stat(fd.Get(), &after) || SeenStamp::Of(after) != SeenStamp::Of(before)) return EntryState::kReplace;
    const bool same = AttributesMatch(tree_[entry], survey_.stamps[entry], request_.match) &&
                      xattrs.error == 0 && xattrs.list == RestoredXattrs(tree_.Xattrs(entry), request_.rules);
    return same ? EntryState::kSame : EntryState::kAttributes;
  }

  static bool Stat(int fd, struct statx* status) {
    return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, status) == 0 && S_ISREG(status->stx_mode);
  }

  const WantedTree& tree_;
  const SurveyRequest& request_;
  Survey& survey_;
  FolderFds fds_;
  ContentProver prover_;
};

}  // namespace

void CheckContents(const WantedTree& tree, const TargetFolder& target, const SurveyRequest& request,
                   const GetMeta& get, const std::function<bool()>& over, Survey* survey) {
  if (survey->to_read.empty()) return;
  SharedNumbers numbers(survey->to_read.size(), 8);
  RunTeam(request.threads, [&] {
    Checker checker(tree, target, request, get, survey);
    for (size_t begin, end; !over() && numbers.Take(&begin, &end);) {
      for (size_t i = begin; i < end; ++i) checker.Check(survey->to_read[i]);
    }
  });
}

}  // namespace overcap
