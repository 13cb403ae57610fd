// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <poll.h>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// What one step of a stream did: it moved some bytes, or it has to wait, or there are no more.
struct NetStep {
  size_t bytes = 0;
  short wait_for = 0;  // poll's event when nothing was moved
  bool end = false;    // the other end has closed in good order
};

// A connection, plain or encrypted, that never waits. kUnavailable: it is lost.
class NetStream {
 public:
  virtual ~NetStream() = default;
  virtual Result<NetStep> Read(char* into, size_t size) = 0;
  // Some of the pieces, from the first on; at least one is not empty.
  virtual Result<NetStep> Write(std::span<const std::string_view> pieces) = 0;
  virtual int fd() const = 0;
  // Whether bytes that came unasked can be told from encryption's own: only then is it worth to look for an
  // answer before all was sent.
  virtual bool plain() const = 0;
};

std::unique_ptr<NetStream> MakePlainStream(Fd socket, std::string peer);

// "the connection to 'peer' was lost: ..."
Error LostConnection(std::string_view peer, int error_number);

}  // namespace overcap
