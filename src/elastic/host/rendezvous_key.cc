// SPDX-License-Identifier: Apache-2.0
#include "elastic/host/rendezvous_key.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "net/handshake.h"
#include "sys/fd.h"
#include "sys/posix_files.h"

namespace overcap::elastic {
namespace {

Result<std::string> ReadKey(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == ENOENT) return Fail(ErrorCode::kNotFound, StrCat("there is no '", path, "'"));
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot open the group's key '", path, "'")));
  struct stat info {};
  if (fstat(file.Get(), &info) != 0) return Fail(ErrnoError(errno, StrCat("cannot look at '", path, "'")));
  if (!S_ISREG(info.st_mode) || info.st_uid != geteuid() || (info.st_mode & 077) != 0) {
    return Fail(ErrorCode::kDenied,
                StrCat("the group's key '", path, "' is not a file that only you can read"),
                "remove it: the next agent makes a new one");
  }
  char text[256];
  const ssize_t size = read(file.Get(), text, sizeof text);
  const std::string key(Trim(std::string_view(text, size > 0 ? static_cast<size_t>(size) : 0)));
  if (!LinkKey::FromHex(key)) {
    return Fail(ErrorCode::kCorrupt, StrCat("'", path, "' holds no key of 64 hexadecimal digits"),
                "remove it: the next agent makes a new one");
  }
  return key;
}

}  // namespace

std::string KeyFileOf(const std::string& folder, std::string_view id) {
  return StrCat(folder, "/", id, ".key");
}

Result<std::string> SharedKey(const std::string& folder, std::string_view id, Random* random) {
  const std::string path = KeyFileOf(folder, id);
  auto key = ReadKey(path);
  if (key || key.error().code != ErrorCode::kNotFound) return key;
  OC_TRY_VOID(PosixFiles().MakeFolders(folder));
  const auto made = PosixFiles().CreateExclusive(path, LinkKey::Make(*random).Hex() + "\n");
  if (!made && made.error().code != ErrorCode::kConflict) return Fail(made.error());
  return ReadKey(path);  // another agent may have been faster
}

std::string KeyLine(const std::string& host, const std::string& file) {
  return StrCat("export OVERCAP_RDZV_KEY=\"$(ssh ", ShellQuote(host), " cat ", ShellQuote(file), ")\"");
}

}  // namespace overcap::elastic
