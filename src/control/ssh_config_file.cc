// SPDX-License-Identifier: Apache-2.0
#include "control/ssh_config_file.h"

#include <cerrno>
#include <sys/stat.h>

#include "base/text.h"
#include "control/file_lock.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::string_view kInclude = "~/.ssh/overcap/config";

std::string SshFolder(const std::string& home) {
  return home + "/.ssh";
}

std::string OwnFolder(const std::string& home) {
  return home + "/.ssh/overcap";
}

// "" when there is none; any other trouble is an error: what cannot be read must not be written over.
Result<std::string> ReadOrEmpty(const std::string& path) {
  auto text = PosixFiles().Read(path);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::string();
  return text;
}

Result<void> Edit(const std::string& home, const std::function<std::string(const std::string&)>& change) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(OwnFolder(home)));
  OC_TRY(lock, LockFile(OwnFolder(home) + "/lock", kPatience));
  OC_TRY(text, ReadOrEmpty(OwnSshConfig(home)));
  const std::string changed = change(text);
  if (changed == text) return {};
  if (changed.empty()) return files.Remove(OwnSshConfig(home));
  return files.WriteAtomic(OwnSshConfig(home), changed, false);
}

// Where a file really stands, so that a link to it stays one; itself when it does not exist yet.
Result<std::string> RealPath(const std::string& path) {
  char* real = realpath(path.c_str(), nullptr);
  if (real != nullptr) {
    std::string found = real;
    free(real);
    return found;
  }
  struct stat info {};
  if (errno == ENOENT && lstat(path.c_str(), &info) != 0) return path;
  return Fail(ErrnoError(errno, StrCat("cannot follow '", path, "'")));
}

// A copy beside the file under a name that nobody has.
Result<std::string> BackUp(const std::string& path, const std::string& text) {
  constexpr int kMost = 1000;
  for (int number = 1; number < kMost; ++number) {
    const std::string name = StrCat(path, ".before-overcap", number == 1 ? "" : StrCat("-", number));
    const auto made = PosixFiles().CreateExclusive(name, text);
    if (made) return name;
    if (made.error().code != ErrorCode::kConflict) return Fail(made.error());
  }
  return Fail(ErrorCode::kConflict, StrCat("there are too many copies of '", path, "' already"));
}

}  // namespace

std::string OwnSshConfig(const std::string& home) {
  return OwnFolder(home) + "/config";
}

std::vector<SshEntry> ReadSshEntries(const std::string& home) {
  const auto text = ReadOrEmpty(OwnSshConfig(home));
  return text ? SshEntries(*text) : std::vector<SshEntry>();
}

Result<void> WriteSshHost(const std::string& home, const SshHost& host) {
  OC_TRY(entry, SshHostEntry(host));
  return Edit(home, [&](const std::string& text) { return WithSshEntry(text, host.name, entry); });
}

Result<void> RemoveSshHosts(const std::string& home, const std::function<bool(const SshEntry&)>& gone) {
  if (!PosixFiles().Exists(OwnSshConfig(home))) return {};
  return Edit(home, [&](const std::string& text) {
    std::string rest = text;
    for (const SshEntry& entry : SshEntries(text)) {
      if (gone(entry)) rest = WithoutSshEntry(rest, entry.name);
    }
    return rest;
  });
}

bool SshIncludeInstalled(const std::string& home) {
  const auto text = ReadOrEmpty(SshFolder(home) + "/config");
  return text && HasSshInclude(*text, kInclude);
}

Result<SshInstall> InstallSshInclude(const std::string& home) {
  PosixFiles files;
  SshInstall install;
  install.file = SshFolder(home) + "/config";
  OC_TRY_VOID(files.MakeFolders(OwnFolder(home)));
  OC_TRY(lock, LockFile(OwnFolder(home) + "/lock", kPatience));
  OC_TRY(real, RealPath(install.file));
  OC_TRY(text, ReadOrEmpty(real));
  if (HasSshInclude(text, kInclude)) return install;
  struct stat info {};
  const bool there = stat(real.c_str(), &info) == 0;
  if (there) {
    OC_TRY(backup, BackUp(install.file, text));
    install.backup = std::move(backup);
  }
  OC_TRY_VOID(files.WriteAtomic(real, WithSshInclude(text, kInclude), true));
  if (there) (void)!chmod(real.c_str(), info.st_mode & 07777);
  install.changed = true;
  return install;
}

}  // namespace overcap
