// SPDX-License-Identifier: Apache-2.0
#include "daemon/root_lock.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/json_scan.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"
#include "sys/proc_table.h"

namespace overcap {
namespace {

constexpr size_t kMostText = 4096;

std::string TextOf(const Fd& file) {
  std::string text(kMostText, '\0');
  const ssize_t size = pread(file.Get(), text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return text;
}

bool HasOption(std::string_view options, std::string_view option) {
  const std::vector<std::string> all = Split(options, ',');
  return std::find(all.begin(), all.end(), option) != all.end();
}

bool LocksStayOnHostNow(const Fd& file) {
  struct stat info {};
  if (fstat(file.Get(), &info) != 0) return true;
  return LocksStayOnHost(PosixFiles().Read("/proc/self/mountinfo").value_or(""),
                         StrCat(major(info.st_dev), ":", minor(info.st_dev)));
}

std::string Name(const LockHolder& holder) {
  const std::string pid = holder.pid > 0 ? StrCat(" (pid ", holder.pid, ")") : "";
  return StrCat("'", HostNameIn(holder.host), "'", pid);
}

}  // namespace

LockHolder ParseLockHolder(std::string_view text) {
  LockHolder holder;
  const size_t line = std::min(text.find('\n'), text.size());
  holder.pid = ParseInt(Trim(text.substr(0, line))).value_or(0);
  const std::string_view json = Trim(text.substr(line));
  if (!json.starts_with('{') || !json.ends_with('}')) return holder;
  holder.host = JsonString(JsonMember(json, "host")).value_or("");
  holder.boot_id = JsonString(JsonMember(json, "boot_id")).value_or("");
  holder.ended = JsonMember(json, "ended") == "true";
  holder.opened_boot_id = JsonString(JsonMember(json, "opened_boot_id")).value_or("");
  holder.opened_host = JsonString(JsonMember(json, "opened_host")).value_or("");
  return holder;
}

bool LocksStayOnHost(std::string_view mountinfo, std::string_view device) {
  constexpr std::array<std::string_view, 6> kNever = {"beegfs", "9p", "virtiofs", "cifs", "smb3", "afs"};
  for (const std::string& line : Split(mountinfo, '\n')) {
    const std::vector<std::string> words = Split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words[2] != device || words.end() - dash < 4) continue;
    const std::string& type = dash[1];
    const std::string& options = dash[3];
    if (type.starts_with("fuse") || std::find(kNever.begin(), kNever.end(), type) != kNever.end())
      return true;
    return HasOption(options, "nolock") || HasOption(options, "local_lock=all") ||
           HasOption(options, "local_lock=flock") || HasOption(options, "localflock");
  }
  return false;
}

std::string OtherHostHint(std::string_view host) {
  const std::string name(HostNameIn(host));
  return StrCat("`ssh ", name,
                " overcap ...` asks that engine, OVERCAP_HOME=FOLDER gives this host a queue of its own; if ",
                "that host will not come back, type `overcap daemon recover --gone ", name, "`");
}

Result<RootLock> RootLock::Take(const std::string& root, std::string_view gone) {
  const std::string path = root + "/daemon.lock";
  Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot open '", path, "'")));
  const bool locked = flock(file.Get(), LOCK_EX | LOCK_NB) == 0;
  const int error = errno;
  if (!locked && error != EWOULDBLOCK) return Fail(ErrnoError(error, StrCat("cannot lock '", path, "'")));
  LockHolder holder = ParseLockHolder(TextOf(file));
  const bool elsewhere = !holder.host.empty() && holder.host != OwnHost();
  if (!locked && elsewhere)
    return Fail(ErrorCode::kUnavailable, StrCat("the engine of '", root, "' runs on host ", Name(holder)),
                OtherHostHint(holder.host));
  if (!locked)
    return Fail(ErrorCode::kConflict,
                StrCat("an engine (or `overcap daemon recover`) works on '", root, "' already",
                       holder.pid > 0 ? StrCat(", pid ", holder.pid) : ""),
                "`overcap daemon stop` ends it; running jobs go on");
  if (elsewhere && !holder.ended && HostNameIn(holder.host) != gone && holder.host != gone &&
      LocksStayOnHostNow(file))
    return Fail(ErrorCode::kUnavailable,
                StrCat("host ", Name(holder), " had the engine of '", root,
                       "' last and has not ended it; whether it still runs cannot be seen here"),
                OtherHostHint(holder.host));
  RootLock lock(std::move(file), std::move(holder));
  lock.Write(false);
  return lock;
}

RootLock::~RootLock() {
  if (file_) Write(true);
}

void RootLock::Opened() {
  before_.opened_boot_id = BootId();
  before_.opened_host = OwnHost();
  Write(false);
}

void RootLock::Write(bool ended) const {
  JsonWriter out;
  out.BeginObject().Field("host", OwnHost()).Field("boot_id", BootId()).Field("ended", ended);
  out.Field("opened_host", before_.opened_host).Field("opened_boot_id", before_.opened_boot_id).EndObject();
  const std::string text = StrCat(getpid(), "\n", out.Take(), "\n");
  if (ftruncate(file_.Get(), 0) != 0 ||
      pwrite(file_.Get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
    return;                      // on a full disk the lock itself still holds
  (void)fdatasync(file_.Get());  // other hosts see only what is on the server
}

}  // namespace overcap
