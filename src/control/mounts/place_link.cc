// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/place_link.h"

#include <cerrno>
#include <climits>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {
namespace {

struct LastPart {
  Fd folder;
  std::string name;
};

Result<LastPart> OpenAbove(const std::string& folder, const std::string& at, bool make) {
  Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot open '", folder, "'")));
  std::vector<std::string> parts = Split(at, '/');
  std::string name = std::move(parts.back());
  parts.pop_back();
  for (const std::string& part : parts) {
    if (make && mkdirat(fd.Get(), part.c_str(), 0777) != 0 && errno != EEXIST)
      return Fail(ErrnoError(errno, StrCat("cannot make the folders above '", at, "'")));
    Fd next(openat(fd.Get(), part.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next)
      return Fail(ErrorCode::kConflict, StrCat("'", part, "' in '", at, "' is no folder of the job's own"));
    fd = std::move(next);
  }
  return LastPart{std::move(fd), std::move(name)};
}

std::string LinkAt(const LastPart& at) {
  std::string text(PATH_MAX, '\0');
  const ssize_t size = readlinkat(at.folder.Get(), at.name.c_str(), text.data(), text.size());
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

// Whether the name is free now.
bool MakeFree(const LastPart& at) {
  if (!LinkAt(at).empty()) return unlinkat(at.folder.Get(), at.name.c_str(), 0) == 0 || errno == ENOENT;
  return unlinkat(at.folder.Get(), at.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT;
}

}  // namespace

Result<void> PlaceLink(const std::string& folder, const std::string& at, const std::string& target) {
  OC_TRY(last, OpenAbove(folder, at, true));
  for (int i = 0; i < 3; ++i) {  // keepers of other nodes may make the same link
    if (symlinkat(target.c_str(), last.folder.Get(), last.name.c_str()) == 0) return {};
    if (errno != EEXIST) return Fail(ErrnoError(errno, StrCat("cannot make '", at, "' in the job's folder")));
    if (LinkAt(last) == target) return {};
    if (!MakeFree(last)) break;
  }
  return Fail(ErrorCode::kConflict, StrCat("'", at, "' is in the job's folder already"));
}

void RemoveLink(const std::string& folder, const std::string& at, const std::string& target) {
  const auto last = OpenAbove(folder, at, false);
  if (last && LinkAt(*last) == target) (void)unlinkat(last->folder.Get(), last->name.c_str(), 0);
}

}  // namespace overcap
