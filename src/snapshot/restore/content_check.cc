// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/content_check.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "snapshot/restore/content_cursor.h"
#include "snapshot/restore/thread_team.h"

namespace overcap {
namespace {

constexpr size_t kBuffer = 1 << 20;

class Checker {
 public:
  Checker(const WantedTree& tree, const TargetFolder& target, const SurveyRequest& request,
          const GetMeta& get, Survey* survey)
      : tree_(tree), request_(request), get_(get), survey_(*survey), fds_(tree, target.fd.Get()) {}

  void Check(uint32_t entry) { survey_.states[entry] = Judge(entry); }

 private:
  EntryState Judge(uint32_t entry) {
    const int folder = fds_.Get(tree_[entry].parent);
    if (folder < 0) return EntryState::kReplace;
    const Fd fd(openat(folder, tree_.Name(entry), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    struct statx before, after;
    if (!fd || !Stat(fd.Get(), &before) || SeenStamp::Of(before) != survey_.stamps[entry])
      return EntryState::kReplace;
    if (!SameContent(fd.Get(), tree_[entry])) return EntryState::kReplace;
    const FoundXattrs xattrs = ReadXattrs(fd.Get(), request_.rules);
    if (!Stat(fd.Get(), &after) || SeenStamp::Of(after) != SeenStamp::Of(before)) return EntryState::kReplace;
    const bool same = AttributesMatch(tree_[entry], survey_.stamps[entry], request_.match) &&
                      xattrs.error == 0 && xattrs.list == RestoredXattrs(tree_.Xattrs(entry), request_.rules);
    return same ? EntryState::kSame : EntryState::kAttributes;
  }

  static bool Stat(int fd, struct statx* status) {
    return statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, status) == 0 && S_ISREG(status->stx_mode);
  }

  bool SameContent(int fd, const WantedEntry& wanted) {
    ContentCursor cursor(wanted, get_);
    while (true) {
      const Result<std::optional<PlacedPart>> next = cursor.Next();
      if (!next) return false;
      if (!*next) return true;
      if (!SamePart(fd, **next)) return false;
    }
  }

  bool SamePart(int fd, const PlacedPart& placed) {
    const bool hole = placed.part.kind == ContentPart::Kind::kHole;
    Sha256 hash;
    const int64_t end = placed.offset + placed.part.length;
    for (int64_t at = placed.offset; at < end;) {
      if (hole) at = std::min(NextData(fd, at, end), end);
      if (at == end) break;
      const ssize_t got =
          pread(fd, buffer_.data(), static_cast<size_t>(std::min<int64_t>(kBuffer, end - at)), at);
      if (got <= 0) return false;
      const size_t size = static_cast<size_t>(got);
      if (hole && !AllZero(size)) return false;
      if (!hole) hash.Update(buffer_.data(), size);
      at += got;
    }
    return hole || hash.Finish() == placed.part.id;
  }

  // A file system that knows no holes has data everywhere.
  static int64_t NextData(int fd, int64_t at, int64_t end) {
    const off_t data = lseek(fd, at, SEEK_DATA);
    if (data >= 0) return data;
    return errno == ENXIO ? end : at;
  }

  bool AllZero(size_t size) const {
    return size == 0 || (buffer_[0] == 0 && memcmp(buffer_.data(), buffer_.data() + 1, size - 1) == 0);
  }

  const WantedTree& tree_;
  const SurveyRequest& request_;
  const GetMeta& get_;
  Survey& survey_;
  FolderFds fds_;
  std::string buffer_ = std::string(kBuffer, '\0');
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
