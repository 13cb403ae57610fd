// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/peer_connection.h"

#include <poll.h>

#include "base/text.h"
#include "control/fanout/stream_io.h"
#include "net/tcp.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int kConnectMs = 5'000;
constexpr int kConnectToHeadMs = 3'500;  // there is another way to it; two packets may be lost

Result<Fd> ConnectTo(const std::string& address, const fanout::Use& use, const LinkKey& key, int stop_fd) {
  const StreamPatience patience{use.head ? kConnectToHeadMs : kConnectMs, stop_fd};
  OC_TRY(fd, BeginConnect(address, use.port));
  OC_TRY_VOID(WaitForStream(fd.Get(), POLLOUT, patience));
  OC_TRY_VOID(ConnectOutcome(fd));
  KernelRandom random;
  Handshake handshake(Handshake::Role::kNode, key, random);
  for (;;) {
    OC_TRY(done, handshake.Step(fd));
    if (done) return fd;
    OC_TRY_VOID(WaitForStream(fd.Get(), POLLIN, patience));
  }
}

}  // namespace

Result<PeerConnection> PeerConnection::Open(const fanout::Use& use, const LinkKey& key, int stop_fd) {
  Error last{ErrorCode::kUnavailable, "it has no address", ""};
  for (const std::string& address : use.addresses) {
    Result<Fd> fd = ConnectTo(address, use, key, stop_fd);
    if (fd) return PeerConnection(*std::move(fd), stop_fd);
    last = std::move(fd).error();
  }
  return Fail(std::move(last));
}

Result<void> PeerConnection::Get(const std::vector<fanout::WantedChunk>& chunks,
                                 const std::vector<char*>& out, std::vector<bool>* there) {
  const StreamPatience patience{.stop_fd = stop_fd_};
  const std::string list = fanout::EncodeChunkList(chunks);
  std::string frame;
  for (int i = 0; i < 4; ++i) frame.push_back(static_cast<char>(list.size() >> (8 * i)));
  OC_TRY_VOID(SendBytes(fd_.Get(), frame.append(list), false, patience));
  std::string marks(chunks.size(), '\0');
  OC_TRY_VOID(ReceiveBytes(fd_.Get(), marks.data(), marks.size(), patience));
  received_ = static_cast<int64_t>(marks.size());
  there->assign(chunks.size(), false);
  for (size_t i = 0; i < chunks.size();) {
    if (marks[i] == '\0') {
      ++i;
      continue;
    }
    const size_t begin = i;  // neighbours in memory are received at once
    size_t bytes = 0;
    for (; i < chunks.size() && marks[i] != '\0' && out[i] == out[begin] + bytes; ++i) {
      bytes += chunks[i].size;
      (*there)[i] = true;
    }
    OC_TRY_VOID(ReceiveBytes(fd_.Get(), out[begin], bytes, patience));
    received_ += static_cast<int64_t>(bytes);
  }
  return {};
}

}  // namespace overcap
