// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

#include "base/text.h"
#include "net/http/net_stream.h"

namespace overcap {
namespace {

constexpr size_t kMostPieces = 64;  // in one call of the kernel

class PlainStream : public NetStream {
 public:
  PlainStream(Fd socket, std::string peer) : socket_(std::move(socket)), peer_(std::move(peer)) {}

  Result<NetStep> Read(char* into, size_t size) override {
    return After(recv(socket_.Get(), into, size, MSG_DONTWAIT), POLLIN);
  }

  Result<NetStep> Write(std::span<const std::string_view> pieces) override {
    iovec parts[kMostPieces];
    msghdr message{};
    message.msg_iov = parts;
    for (const std::string_view piece : pieces) {
      if (message.msg_iovlen == kMostPieces) break;
      if (!piece.empty()) parts[message.msg_iovlen++] = {const_cast<char*>(piece.data()), piece.size()};
    }
    return After(sendmsg(socket_.Get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT), POLLOUT);
  }

  int fd() const override { return socket_.Get(); }
  bool plain() const override { return true; }

 private:
  Result<NetStep> After(ssize_t moved, short event) const {
    if (moved > 0) return NetStep{static_cast<size_t>(moved), 0, false};
    if (moved == 0) return NetStep{0, 0, true};
    if (errno == EAGAIN || errno == EINTR) return NetStep{0, event, false};
    return Fail(LostConnection(peer_, errno));
  }

  const Fd socket_;
  const std::string peer_;
};

}  // namespace

std::unique_ptr<NetStream> MakePlainStream(Fd socket, std::string peer) {
  return std::make_unique<PlainStream>(std::move(socket), std::move(peer));
}

Error LostConnection(std::string_view peer, int error_number) {
  return {ErrorCode::kUnavailable,
          StrCat("the connection to '", peer,
                 "' was lost: ", error_number != 0 ? strerror(error_number) : "it was closed too early"),
          ""};
}

}  // namespace overcap
