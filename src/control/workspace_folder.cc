// SPDX-License-Identifier: Apache-2.0
#include "control/workspace_folder.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "model/json_fields.h"
#include "snapshot/sha256.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kFormat = "overcap workspace folder";
constexpr int64_t kVersion = 1;
constexpr std::string_view kCheck = ",\"check\":\"";
// Who only looks whether somebody has the lock has it for a moment.
constexpr std::chrono::milliseconds kPatience(300);
constexpr int kMostSteps = 20;

std::string CopyFile(const std::string& folder) {
  return LocalFolderOf(folder) + "/workspace.json";
}

std::string LockPath(const std::string& folder) {
  return LocalFolderOf(folder) + "/lock";
}

// For any shell, also one that knows no $'...'.
std::string SingleQuoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// From its start. Best effort: the line is only for people, its ctime is what counts.
void Rewrite(int fd, std::string_view text) {
  if (ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0) (void)WriteAll(fd, text);
}

// The line that its holder has left there.
std::string LockText(const std::string& folder) {
  const auto text = PosixFiles().ReadRange(LockPath(folder), 0, 500);
  const std::string line(text ? Trim(text->substr(0, text->find('\n'))) : "");
  return line.empty() ? "another process" : ToUtf8(line);
}

}  // namespace

std::string WorkspaceCopyToJson(const WorkspaceCopy& copy) {
  JsonWriter json;
  json.BeginObject().Field("format", kFormat).Field("version", kVersion);
  json.Field("workspace", copy.workspace).Field("id", copy.id);
  WriteBytes(&json, "root", copy.root);
  json.Field("base", copy.base).Field("base_tree", copy.base_tree);
  json.Field("restoring", copy.restoring).Field("restoring_tree", copy.restoring_tree);
  std::string text = json.EndObject().Take();
  text.pop_back();
  return StrCat(text, kCheck, Sha256Of(text).Hex(), "\"}\n");
}

Result<WorkspaceCopy> WorkspaceCopyFromJson(std::string_view text, const std::string& file) {
  const std::string what = StrCat("'", file, "'");
  // One of an older program has no check; one of a newer program may have another.
  bool damaged = false;
  if (const size_t check = text.rfind(kCheck); check != std::string_view::npos) {
    const std::string end = StrCat(kCheck, Sha256Of(text.substr(0, check)).Hex(), "\"}\n");
    damaged = text.substr(check) != end;
  }
  OC_TRY(json, ParseJsonObject(text, what));
  FieldReader reader(json, what);
  WorkspaceCopy copy;
  std::string format;
  int64_t version = 0;
  reader.Read("format", &format);
  reader.Read("version", &version);
  reader.Read("workspace", &copy.workspace);
  reader.Read("id", &copy.id);
  reader.Read("root", &copy.root);
  reader.Read("base", &copy.base);
  reader.Read("base_tree", &copy.base_tree);
  reader.Read("restoring", &copy.restoring);
  reader.Read("restoring_tree", &copy.restoring_tree);
  OC_TRY_VOID(reader.Check());
  if (format != kFormat || version < 1)
    return Fail(ErrorCode::kCorrupt, StrCat("'", file, "' does not say which workspace this is"));
  if (version > kVersion) {
    return Fail(ErrorCode::kConflict,
                StrCat("'", file, "' was written by a newer Overcap (format ", version, ")"),
                "update this Overcap");
  }
  if (damaged) return Fail(ErrorCode::kCorrupt, StrCat(what, " is damaged"));
  return copy;
}

std::string LocalFolderOf(const std::string& folder) {
  return folder + "/.overcap";
}

std::string SeenFileOf(const std::string& folder) {
  return LocalFolderOf(folder) + "/seen";
}

Result<WorkspaceCopy> ReadWorkspaceCopy(const std::string& folder) {
  const std::string file = CopyFile(folder);
  auto text = PosixFiles().Read(file);
  if (!text && text.error().code == ErrorCode::kNotFound)
    return Fail(ErrorCode::kNotFound, StrCat("'", folder, "' is no workspace"));
  if (!text) return Fail(text.error());
  return WorkspaceCopyFromJson(*text, file);
}

Result<void> WriteWorkspaceCopy(const std::string& folder, const WorkspaceCopy& copy) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(LocalFolderOf(folder)));
  return files.WriteAtomic(CopyFile(folder), WorkspaceCopyToJson(copy), true);
}

std::string WorkspaceAbove(const std::string& folder) {
  PosixFiles files;
  for (std::string at = folder; at.size() > 1; at.erase(at.rfind('/'))) {
    if (files.Exists(CopyFile(at))) return at;
  }
  return "";
}

Result<FileLock> LockWorkspace(const std::string& folder, std::string_view what, const Clock& clock) {
  OC_TRY_VOID(PosixFiles().MakeFolders(LocalFolderOf(folder)));
  auto lock = LockFile(LockPath(folder), kPatience);
  if (!lock && lock.error().code == ErrorCode::kUnavailable) {
    return Fail(ErrorCode::kConflict, StrCat("'", folder, "' is in use: ", LockText(folder)),
                "wait until it is done");
  }
  if (!lock) return lock;
  std::string since = FormatTimeUtc(clock.WallUs());
  const std::string line =
      StrCat("pid ", getpid(), " on ", OwnHostName(), ": ", what, ", since ", since.substr(0, 19), "Z\n");
  const int fd = lock->fd.Get();
  const int64_t before_ns = LockedNs(*lock);
  // Later than the lock before, though the clock of a file system goes in steps of milliseconds.
  for (int tries = 0; tries < kMostSteps; ++tries) {
    Rewrite(fd, line);
    if (LockedNs(*lock) != before_ns) break;
    const struct timespec step = {0, 1'000'000};
    (void)nanosleep(&step, nullptr);
  }
  return lock;
}

int64_t LockedNs(const FileLock& lock) {
  struct stat status {};
  if (fstat(lock.fd.Get(), &status) != 0) return 1;  // then all that is there counts as new
  return status.st_ctim.tv_sec * 1'000'000'000LL + status.st_ctim.tv_nsec;
}

std::optional<std::string> WorkspaceLockHolder(const std::string& folder) {
  const Fd fd(open(LockPath(folder).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return std::nullopt;
  // A shared lock that cannot be had says that somebody has the other; it is gone with the descriptor.
  if (flock(fd.Get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) return std::nullopt;
  return LockText(folder);
}

std::string ActivateText(const Workspace& workspace, const std::string& folder) {
  const std::string ccache = SingleQuoted(LocalFolderOf(folder) + "/ccache");
  std::string text =
      StrCat("# Made by overcap on each node; to be sourced by a shell that works here.\n",
             "export OVERCAP_WORKSPACE=", workspace.name, "\nexport CCACHE_DIR=", ccache, "\n");
  if (workspace.env == "venv") text += StrCat(". ", SingleQuoted(folder + "/.venv/bin/activate"), "\n");
  if (workspace.env == "conda") {
    const std::string prefix = folder + "/.conda";
    const std::string scripts = SingleQuoted(prefix + "/etc/conda/activate.d");
    text += StrCat(
        "export CONDA_PREFIX=", SingleQuoted(prefix), "\nexport PATH=", SingleQuoted(prefix + "/bin"),
        "\":$PATH\"\n",
        // What packages want set, as conda itself does it; no pattern: zsh stops where one matches nothing.
        "for oc_script in $(ls ", scripts, " 2>/dev/null); do\n  case $oc_script in *.sh) . ", scripts,
        "/\"$oc_script\" ;; esac\ndone\nunset oc_script\n");
  }
  return text;
}

Result<void> WriteActivate(const Workspace& workspace, const std::string& folder) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(LocalFolderOf(folder)));
  return files.WriteAtomic(LocalFolderOf(folder) + "/activate", ActivateText(workspace, folder), false);
}

}  // namespace overcap
