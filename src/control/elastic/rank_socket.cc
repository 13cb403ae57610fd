// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/rank_socket.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

constexpr int kMostAtOnce = 1024;
constexpr size_t kLongestWord = 128;

bool FromSameUser(msghdr* message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(message); part != nullptr; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred who{};
    memcpy(&who, CMSG_DATA(part), sizeof who);
    return who.uid == geteuid();
  }
  return false;
}

}  // namespace

Result<RankSocket> RankSocket::Make(const std::string& name) {
  RankSocket made;
  made.name_ = name;
  made.fd_ = Fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path)
    return Fail(ErrorCode::kInternal, "the name of a socket is too long");
  memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int on = 1;
  if (!made.fd_ || setsockopt(made.fd_.Get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      bind(made.fd_.Get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return Fail(ErrnoError(errno, "cannot make a socket for the ranks"));
  }
  return made;
}

Result<RankSocket::Word> RankSocket::Parse(std::string_view text) {
  const std::vector<std::string> words = Split(text, ' ');
  const auto bad = [] { return Fail(ErrorCode::kCorrupt, "not a word of a rank"); };
  if (words.size() != 4 || (words[0] != "H" && words[0] != "C")) return bad();
  const auto epoch = ParseInt(words[1]), rank = ParseInt(words[2]), step = ParseInt(words[3]);
  if (!epoch || !rank || !step || *epoch < 1 || *rank < 0 || *rank > 1'000'000 || *step < -1) return bad();
  return Word{words[0] == "C", *epoch, static_cast<int>(*rank), *step};
}

void RankSocket::Act(const std::function<bool(const Word&)>& take) {
  for (int i = 0; i < kMostAtOnce; ++i) {
    char text[kLongestWord];
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(ucred))];
    sockaddr_un from{};
    iovec piece{text, sizeof text};
    msghdr message{&from, sizeof from, &piece, 1, control, sizeof control, 0};
    const ssize_t n = recvmsg(fd_.Get(), &message, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return;
    if (!FromSameUser(&message)) continue;
    const auto word = Parse({text, static_cast<size_t>(n)});
    if (!word) continue;
    const bool yield = take(*word);
    if (!word->checkpoint || message.msg_namelen <= offsetof(sockaddr_un, sun_path)) continue;
    const std::string_view answer = yield ? "yield" : "go";
    (void)sendto(fd_.Get(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(&from), message.msg_namelen);
  }
}

}  // namespace overcap
