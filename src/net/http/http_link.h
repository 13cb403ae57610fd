// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "net/http/http_wait.h"
#include "net/http/net_stream.h"

namespace overcap {

// A connection and what was read from it ahead of need. One request at a time.
class HttpLink {
 public:
  explicit HttpLink(std::unique_ptr<NetStream> stream);

  // All pieces. True: all was sent. False: the server began to answer, or closed, before it had taken all.
  Result<bool> Send(std::vector<std::string_view> pieces, const HttpWait& wait);

  // What was read and not yet taken; Take() takes from its front.
  std::string_view ahead() const { return {buffer_.get() + begin_, end_ - begin_}; }
  void Take(size_t size) { begin_ += size; }
  // Reads more behind it; false at the end of the connection. There must be room: less than kRoom is ahead.
  Result<bool> ReadMore(const HttpWait& wait);
  // Reads past the buffer, which must be empty; 0 at the end of the connection.
  Result<size_t> ReadInto(char* into, size_t size, const HttpWait& wait);

  // Tells the server now what has arrived. One that writes head and body apart may hold the body back until
  // it knows that the head arrived, which is otherwise told 40 ms later.
  void AckNow() const;

  // Whether a connection that was put aside can still be used: it is quiet and open.
  bool Fresh() const;
  // The connection broke or was closed: nothing of what was asked came back, unless something is ahead.
  bool lost() const { return lost_; }
  bool heard() const { return heard_; }  // something came since Quiet()
  void Quiet() { heard_ = false; }

  static constexpr size_t kRoom = 64 * 1024;

 private:
  const std::unique_ptr<NetStream> stream_;
  const std::unique_ptr<char[]> buffer_;
  size_t begin_ = 0, end_ = 0;
  bool lost_ = false, heard_ = false;
};

}  // namespace overcap
