// SPDX-License-Identifier: Apache-2.0
#include "net/resolve.h"

#include <algorithm>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

void Resolve(const std::string& host, int fd) {
  const Fd out(fd);
  addrinfo hints{}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return;
  std::string text;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    char address[NI_MAXHOST];
    const int named =
        getnameinfo(each->ai_addr, each->ai_addrlen, address, sizeof address, nullptr, 0, NI_NUMERICHOST);
    if (named == 0) text += StrCat(address, "\n");
  }
  freeaddrinfo(list);
  (void)!write(out.Get(), text.data(), std::min<size_t>(text.size(), PIPE_BUF));
}

}  // namespace

Result<Fd> ResolveBeside(const std::string& host) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return Fail(ErrnoError(errno, "cannot make a pipe"));
  // It must take no signal that is meant for others, nor die when nobody reads any more.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread(Resolve, host, ends[1]).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return Fd(ends[0]);
}

}  // namespace overcap
