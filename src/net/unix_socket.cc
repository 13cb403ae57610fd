// SPDX-License-Identifier: Apache-2.0
#include "net/unix_socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>

#include "base/text.h"

namespace overcap {
namespace {

tl::unexpected<Error> Errno(int error_number, std::string_view what, const std::string& path) {
  return Fail(ErrnoError(error_number, StrCat("cannot ", what, " '", path, "'")));
}

// A socket's path, split: what stands in the folder is named through its descriptor, which makes any path
// short and keeps bind, connect and unlink in one and the same folder.
struct Place {
  Fd folder;
  std::string name;
  sockaddr_un address{};
};

Result<Place> Locate(const std::string& path, std::string_view what) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash + 1 == path.size()) {
    return Fail(ErrorCode::kUsage, StrCat("'", path, "' is no absolute path of a socket"));
  }
  Place place;
  const std::string folder = path.substr(0, slash == 0 ? 1 : slash);
  place.folder = Fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!place.folder) return Errno(errno, what, path);
  place.name = path.substr(slash + 1);
  place.address.sun_family = AF_UNIX;
  const std::string direct = path.size() < sizeof place.address.sun_path
                                 ? path
                                 : StrCat("/proc/self/fd/", place.folder.Get(), "/", place.name);
  if (direct.size() >= sizeof place.address.sun_path) {
    return Fail(ErrorCode::kUsage, StrCat("the name of the socket '", path, "' is too long"));
  }
  std::memcpy(place.address.sun_path, direct.c_str(), direct.size() + 1);
  return place;
}

const sockaddr* Address(const Place& place) {
  return reinterpret_cast<const sockaddr*>(&place.address);
}

// `mode`: of the folder.
Result<void> TakeFolder(const Fd& folder, mode_t mode, const std::string& path) {
  struct stat info {};
  if (fstat(folder.Get(), &info) != 0) return Errno(errno, "listen at", path);
  if (info.st_uid != geteuid()) {
    return Fail(ErrorCode::kDenied,
                StrCat("cannot listen at '", path, "': its folder belongs to another user"));
  }
  if ((info.st_mode & 0777) != mode && fchmod(folder.Get(), mode) != 0)
    return Errno(errno, "listen at", path);
  return {};
}

// Only a socket without a listener may be replaced.
Result<void> CheckStale(const Place& place, const std::string& path) {
  struct stat info {};
  if (fstatat(place.folder.Get(), place.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) {
    return Fail(ErrorCode::kConflict, StrCat("'", path, "' exists and is no socket"), "move it away");
  }
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return Errno(errno, "listen at", path);
  const bool answered = connect(probe.Get(), Address(place), sizeof place.address) == 0 || errno == EAGAIN;
  if (answered) return Fail(ErrorCode::kConflict, StrCat("another process listens at '", path, "'"));
  return {};
}

void SetSendTimeout(int fd, std::chrono::milliseconds timeout) {
  timeval time{};
  time.tv_sec = timeout.count() / 1000;
  time.tv_usec = timeout.count() % 1000 * 1000;
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

Result<Fd> ListenWith(const std::string& path, mode_t folder_mode, mode_t socket_mode) {
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) mkdir(path.substr(0, slash).c_str(), 0700);
  OC_TRY(place, Locate(path, "listen at"));
  OC_TRY_VOID(TakeFolder(place.folder, folder_mode, path));
  OC_TRY_VOID(CheckStale(place, path));
  // Bound under another name and then renamed: clients find a socket at any time, even while a stale one is
  // replaced, and never one that does not listen yet.
  OC_TRY(fresh, Locate(path + ".new", "listen at"));
  if (unlinkat(fresh.folder.Get(), fresh.name.c_str(), 0) != 0 && errno != ENOENT)
    return Errno(errno, "replace", path);
  Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The mode of an unbound socket is, less the umask, the mode that bind gives to its file: it is never open
  // to others who may not.
  if (!listener || fchmod(listener.Get(), socket_mode) != 0) return Errno(errno, "listen at", path);
  if (bind(listener.Get(), Address(fresh), sizeof fresh.address) != 0) return Errno(errno, "listen at", path);
  const bool open = (socket_mode & 077) != 0;
  if ((open && fchmodat(fresh.folder.Get(), fresh.name.c_str(), socket_mode, 0) != 0) ||
      listen(listener.Get(), SOMAXCONN) != 0 ||
      renameat(fresh.folder.Get(), fresh.name.c_str(), place.folder.Get(), place.name.c_str()) != 0) {
    const int error = errno;
    unlinkat(fresh.folder.Get(), fresh.name.c_str(), 0);
    return Errno(error, "listen at", path);
  }
  return listener;
}

}  // namespace

Result<Fd> ListenUnix(const std::string& path) {
  return ListenWith(path, 0700, 0600);
}

Result<Fd> ListenUnixForAll(const std::string& path) {
  return ListenWith(path, 0755, 0666);
}

Result<std::optional<Fd>> AcceptUnix(const Fd& listener) {
  int fd;
  do {
    fd = accept4(listener.Get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (fd >= 0) return std::optional<Fd>(Fd(fd));
  if (errno == EAGAIN) return std::optional<Fd>();
  return Fail(ErrnoError(errno, "cannot accept a connection"));
}

Result<Fd> ConnectUnix(const std::string& path, std::chrono::milliseconds timeout) {
  OC_TRY(place, Locate(path, "connect to"));
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return Errno(errno, "connect to", path);
  // A full backlog makes connect wait; the send timeout bounds that. Zero would mean for ever.
  SetSendTimeout(fd.Get(), std::max(timeout, std::chrono::milliseconds(1)));
  if (connect(fd.Get(), Address(place), sizeof place.address) != 0) {
    if (errno == ECONNREFUSED) return Fail(ErrorCode::kUnavailable, StrCat("nobody listens at '", path, "'"));
    if (errno == EINTR || errno == EAGAIN) {
      return Fail(ErrorCode::kUnavailable, StrCat("nobody accepted a connection at '", path, "' in time"));
    }
    return Errno(errno, "connect to", path);
  }
  SetSendTimeout(fd.Get(), std::chrono::milliseconds(0));
  return fd;
}

Result<SocketPeer> PeerOf(const Fd& connection) {
  const auto failed = [] {
    return Fail(ErrnoError(errno, "cannot tell who is at the other end of a connection"));
  };
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(connection.Get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return failed();
  SocketPeer peer{credentials.uid, credentials.gid, credentials.pid, std::vector<gid_t>(64)};
  // The first call with too little room says how much it needs.
  for (int tries = 0; tries < 2; ++tries) {
    size = static_cast<socklen_t>(peer.groups.size() * sizeof(gid_t));
    const int got = getsockopt(connection.Get(), SOL_SOCKET, SO_PEERGROUPS, peer.groups.data(), &size);
    if (got != 0 && errno != ERANGE) return failed();
    peer.groups.resize(size / sizeof(gid_t));
    if (got == 0) {
      std::sort(peer.groups.begin(), peer.groups.end());
      return peer;
    }
  }
  return failed();
}

Result<uid_t> PeerUid(const Fd& connection) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (getsockopt(connection.Get(), SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return Fail(ErrnoError(errno, "cannot tell who is at the other end of a connection"));
  }
  return credentials.uid;
}

}  // namespace overcap
