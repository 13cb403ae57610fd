// SPDX-License-Identifier: Apache-2.0
// The other side of a PeerServer.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "control/fanout/fanout_messages.h"
#include "net/handshake.h"
#include "sys/fd.h"

namespace overcap {

// One thread at a time. After an error it is of no further use.
class PeerConnection {
 public:
  // To the first of the addresses that answers in time (of the head, which is near: sooner). kUnavailable;
  // kDenied for somebody who does not know the key. `stop_fd` as StreamPatience has it.
  static Result<PeerConnection> Open(const fanout::Use& use, const LinkKey& key, int stop_fd);

  // Each chunk to its place in `out`; in `there` whether the peer had it.
  Result<void> Get(const std::vector<fanout::WantedChunk>& chunks, const std::vector<char*>& out,
                   std::vector<bool>* there);
  // Bytes of the answer to the last Get.
  int64_t received() const { return received_; }

 private:
  PeerConnection(Fd fd, int stop_fd) : fd_(std::move(fd)), stop_fd_(stop_fd) {}

  Fd fd_;
  int stop_fd_;
  int64_t received_ = 0;
};

}  // namespace overcap
