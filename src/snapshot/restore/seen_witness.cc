// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/seen_witness.h"

#include <algorithm>
#include <fcntl.h>
#include <vector>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "snapshot/restore/folder_names.h"

namespace overcap {
namespace {

constexpr int kFlags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;

unsigned TypeOf(const SeenEntry& seen) {
  if (seen.IsFolder()) return S_IFDIR;
  return seen.type == SnapshotEntryType::kSymlink ? S_IFLNK : S_IFREG;
}

// Whether it can be the entry that was seen. A cache that does not know when an entry changed has 0 for that;
// of folders times and sizes say nothing.
bool MayBe(const SeenStamp& found, const SeenEntry& seen) {
  SeenStamp noted = seen.stamp;
  if (noted.ctime_ns == 0 || seen.IsFolder()) noted.ctime_ns = found.ctime_ns;
  if (seen.IsFolder()) noted.mtime_ns = found.mtime_ns;
  return found == noted;
}

}  // namespace

SeenWitness::Word SeenWitness::Confirm(int fd, const char* name, const struct statx& status,
                                       SeenEntry* seen) {
  const SeenStamp found = SeenStamp::Of(status);
  if ((status.stx_mode & S_IFMT) != TypeOf(*seen)) return Word::kNo;
  if (StillAsSeen(found, seen, request_.knowledge)) return Word::kStamp;
  if ((seen->flags & kSeenNotInTree) != 0 || !MayBe(found, *seen)) return Word::kNo;
  const bool same = seen->IsFile() ? ReadsAsSeen(fd, name, found, *seen) : HasXattrs(fd, name, *seen);
  if (!same) return Word::kNo;
  if (seen->type == SnapshotEntryType::kSymlink) {
    const Result<std::string> target = ReadLinkAt(fd, name);
    if (!target || *target != seen->target) return Word::kNo;
  }
  seen->stamp = found;
  return Word::kLooked;
}

bool SeenWitness::ReadsAsSeen(int fd, const char* name, const SeenStamp& stamp, const SeenEntry& seen) {
  const Fd file(openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  const auto unchanged = [&] {
    struct statx status;
    return statx(file.Get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) == 0 &&
           S_ISREG(status.stx_mode) && SeenStamp::Of(status) == stamp;
  };
  if (!file || !unchanged()) return false;
  WantedEntry wanted;
  wanted.size = stamp.size;
  wanted.content = seen.content.kind;
  wanted.id = seen.content.id;
  if (!prover_.IsContentOf(file.Get(), wanted)) return false;
  const FoundXattrs xattrs = ReadXattrs(file.Get(), request_.rules);
  return xattrs.error == 0 && EncodeXattrs(xattrs.list) == seen.xattrs && unchanged();
}

bool SeenWitness::HasXattrs(int fd, const char* name, const SeenEntry& seen) const {
  const FoundXattrs found = ReadXattrsAt(fd, name, request_.rules);
  return found.error == 0 && EncodeXattrs(found.list) == seen.xattrs;
}

bool SeenWitness::ConfirmAll(int fd, SeenEntry seen, const std::string& path, int depth) {
  const std::string name(seen.name);
  struct statx status;
  if (depth > kDeepest || statx(fd, name.c_str(), kFlags, STATX_BASIC_STATS, &status) != 0) return false;
  const Word word = Confirm(fd, name.c_str(), status, &seen);
  if (word == Word::kNo || !seen.IsFolder()) return word != Word::kNo;
  const Fd folder(openat(fd, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder && ConfirmFolder(folder.Get(), seen, path, word != Word::kStamp, depth);
}

bool SeenWitness::ConfirmFolder(int fd, const SeenEntry& seen, const std::string& path, bool list,
                                int depth) {
  std::vector<std::string_view> known;
  SeenCursor cursor = request_.seen->Open(seen.folder);
  for (SeenEntry entry; cursor.Next(&entry);) {
    known.push_back(entry.name);
    if (!ConfirmAll(fd, entry, StrCat(path, "/", entry.name), depth + 1)) return false;
  }
  if (!list) return true;
  std::vector<ListedName> names;
  if (!ListNames(fd, false, &names)) return false;
  return std::all_of(names.begin(), names.end(), [&](const ListedName& listed) {
    return listed.is_special ||
           std::binary_search(known.begin(), known.end(), std::string_view(listed.name)) ||
           (request_.exclude != nullptr &&
            request_.exclude->Match(StrCat(path, "/", listed.name), listed.is_folder) ==
                IgnoreVerdict::kIgnored);
  });
}

}  // namespace overcap
