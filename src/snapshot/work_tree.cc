// SPDX-License-Identifier: Apache-2.0
// Which rules hold in a folder that is part of a git work tree.
#include <fcntl.h>
#include <sys/stat.h>

#include "base/text.h"
#include "snapshot/file_io.h"
#include "snapshot/ignore.h"

namespace overcap {
namespace {

std::string ParentOf(const std::string& folder) {
  const size_t slash = folder.rfind('/');
  return slash == 0 ? "/" : folder.substr(0, slash);
}

std::string Below(const std::string& folder, std::string_view name) {
  return StrCat(folder == "/" ? "" : folder, "/", name);
}

// The nearest folder, from `folder` upwards, that has a `.git`; "" when there is none.
std::string FindTop(std::string folder) {
  while (true) {
    struct stat status;
    if (lstat(Below(folder, ".git").c_str(), &status) == 0) return folder;
    if (folder == "/" || folder.empty()) return {};
    folder = ParentOf(folder);
  }
}

// A path that a git file names, relative to the folder it stands in.
std::string Resolve(const std::string& folder, std::string_view path) {
  path = Trim(path);
  return path.substr(0, 1) == "/" ? std::string(path) : Below(folder, path);
}

// Where the repository keeps info/exclude: `.git` may be a file that points elsewhere (linked work trees,
// submodules).
std::string CommonGitFolder(const std::string& top) {
  std::string git = Below(top, ".git");
  const std::string pointer = ReadFileOrNothing(AT_FDCWD, git);
  if (pointer.rfind("gitdir:", 0) == 0) git = Resolve(top, std::string_view(pointer).substr(7));
  const std::string common = ReadFileOrNothing(AT_FDCWD, git + "/commondir");
  return common.empty() ? git : Resolve(git, common);
}

}  // namespace

IgnoreStack IgnoreStackFor(const std::string& folder) {
  const std::string top = FindTop(folder);
  if (top.empty()) return IgnoreStack();
  std::string prefix = folder == top ? "" : folder.substr(top == "/" ? 1 : top.size() + 1) + "/";
  IgnoreStack stack(prefix);
  IgnoreStack above;  // the same rules, to ask about the folders on the way
  const std::string exclude = ReadFileOrNothing(AT_FDCWD, CommonGitFolder(top) + "/info/exclude");
  stack.SetLast(IgnoreRules(exclude));
  above.SetLast(IgnoreRules(exclude));
  for (size_t at = 0; at < prefix.size(); at = prefix.find('/', at) + 1) {
    const std::string here = prefix.substr(0, at);
    const std::string git = ReadFileOrNothing(AT_FDCWD, Below(top, here + std::string(kGitIgnoreName)));
    const std::string own = ReadFileOrNothing(AT_FDCWD, Below(top, here + std::string(kOvercapIgnoreName)));
    stack.EnterAbove(here, git, own);
    above.Enter(here, git, own);
    if (above.Ignores(prefix.substr(0, prefix.find('/', at)), true)) return IgnoreStack();
  }
  return stack;
}

}  // namespace overcap
