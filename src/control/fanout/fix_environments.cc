// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fix_environments.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "control/fanout/venv_paths.h"
#include "snapshot/restore/folder_fds.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kTextMost = 262'144;

class Fixer {
 public:
  Fixer(const WantedTree& tree, const FixRequest& request, int root_fd, int kept_fd, FolderChunks* chunks)
      : tree_(tree), request_(request), kept_fd_(kept_fd), chunks_(*chunks), fds_(tree, root_fd) {}

  Result<std::vector<std::string>> Run() {
    for (uint32_t entry = 0; entry < tree_.size(); ++entry) {
      if (tree_[entry].IsFile() && std::string_view(tree_.Name(entry)) == "pyvenv.cfg")
        OC_TRY_VOID(FixOne(entry));
    }
    return fixed_;
  }

 private:
  uint32_t Child(uint32_t folder, std::string_view name) const {
    for (uint32_t entry = tree_.First(folder); entry < tree_.End(folder); entry = tree_.Next(entry)) {
      if (name == tree_.Name(entry)) return entry;
    }
    return kNoEntry;
  }

  // The environment whose pyvenv.cfg this is.
  Result<void> FixOne(uint32_t config) {
    const uint32_t folder = tree_[config].parent;
    const std::string inside = tree_.Path(folder);
    const std::string at = inside.empty() ? request_.target : StrCat(request_.target, "/", inside);
    const uint32_t bin = Child(folder, "bin");
    const bool has_bin = bin != kNoEntry && tree_[bin].IsFolder();
    std::vector<PathChange> changes;
    const auto add = [&](const std::string& from, const std::string& to) {
      if (from != to && from.size() > 1) changes.push_back({from, to});
    };
    for (const std::string& old : request_.old) add(old, request_.target);
    if (has_bin) {
      if (const uint32_t activate = Child(bin, "activate"); activate != kNoEntry)
        add(EnvironmentPathIn(ReadText(activate)), at);
    }
    if (changes.empty()) return {};
    OC_TRY_VOID(Change(config, WithPathsChanged(ReadText(config), changes)));
    if (!has_bin) return {};
    for (uint32_t entry = tree_.First(bin); entry < tree_.End(bin); entry = tree_.Next(entry)) {
      if (!tree_[entry].IsFile()) continue;
      const std::string text = ReadText(entry);
      const bool sourced = std::string_view(tree_.Name(entry)).starts_with("activate");
      OC_TRY_VOID(
          Change(entry, sourced ? WithPathsChanged(text, changes) : WithInterpreterChanged(text, changes)));
    }
    return {};
  }

  // "" for what is too large for a script, or cannot be read.
  std::string ReadText(uint32_t entry) {
    const WantedEntry& file = tree_[entry];
    if (file.content != FileContent::Kind::kChunk || file.size > kTextMost) return "";
    std::string text(static_cast<size_t>(file.size), '\0');
    if (!chunks_.Read({file.id, static_cast<uint32_t>(file.size)}, text.data())) return "";
    return text;
  }

  Result<void> Change(uint32_t entry, const std::string& text) {
    const WantedEntry& file = tree_[entry];
    const std::string before = ReadText(entry);
    if (text.empty() || text == before) return {};
    const std::string name = file.id.Hex();
    const std::string kept = StrCat(request_.kept, "/", name);
    OC_TRY_VOID(WriteFile(name, before, nullptr));
    OC_TRY_VOID(WriteFile("new", text, &file));
    const int folder = fds_.Get(file.parent);
    if (folder < 0 || renameat(kept_fd_, "new", folder, tree_.Name(entry)) != 0) {
      const Error error = ErrnoError(errno, StrCat("cannot change ", Quoted(tree_.Path(entry), 300)));
      (void)unlinkat(kept_fd_, "new", 0);
      return Fail(error);
    }
    chunks_.Move(file.id, kept);
    fixed_.push_back(tree_.Path(entry));
    return {};
  }

  Result<void> WriteFile(const std::string& name, const std::string& text, const WantedEntry* like) {
    (void)unlinkat(kept_fd_, name.c_str(), 0);
    const Fd fd(openat(kept_fd_, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    const auto fail = [&](int error) {
      return Fail(ErrnoError(error, StrCat("cannot write into ", Quoted(request_.kept, 300))));
    };
    if (!fd) return fail(errno);
    if (const int error = WriteAll(fd.Get(), text); error != 0) return fail(error);
    if (like == nullptr) return {};
    const timespec times[2] = {{0, UTIME_OMIT},
                               {like->mtime_ns / 1'000'000'000, like->mtime_ns % 1'000'000'000}};
    if (fchmod(fd.Get(), like->mode) != 0 || (like->mtime_ns >= 0 && futimens(fd.Get(), times) != 0))
      return fail(errno);
    return {};
  }

  const WantedTree& tree_;
  const FixRequest& request_;
  const int kept_fd_;
  FolderChunks& chunks_;
  FolderFds fds_;
  std::vector<std::string> fixed_;
};

}  // namespace

Result<std::vector<std::string>> FixEnvironments(const WantedTree& tree, const FixRequest& request,
                                                 FolderChunks* chunks) {
  OC_TRY(target, TargetFolder::Open(request.target, false));
  const Fd kept(
      openat(target.fd.Get(), request.kept.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!kept) return Fail(ErrnoError(errno, StrCat("cannot open ", Quoted(request.kept, 300))));
  return Fixer(tree, request, target.fd.Get(), kept.Get(), chunks).Run();
}

}  // namespace overcap
