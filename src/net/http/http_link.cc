// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_link.h"

#include <algorithm>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace overcap {
namespace {

// Drops `size` bytes from the front of the pieces that begin at `first`.
size_t Drop(std::vector<std::string_view>* pieces, size_t first, size_t size) {
  while (first < pieces->size() && size >= (*pieces)[first].size()) size -= (*pieces)[first++].size();
  if (size > 0) (*pieces)[first].remove_prefix(size);
  return first;
}

}  // namespace

HttpLink::HttpLink(std::unique_ptr<NetStream> stream)
    : stream_(std::move(stream)), buffer_(new char[kRoom]) {}

Result<bool> HttpLink::Send(std::vector<std::string_view> pieces, const HttpWait& wait) {
  size_t first = Drop(&pieces, 0, 0);
  while (first < pieces.size()) {
    auto step = stream_->Write(std::span(pieces).subspan(first));
    // Who does not want the rest may have said why before closing: that is to be read.
    if (!step || step->end) return false;
    if (step->wait_for == 0) {
      first = Drop(&pieces, first, step->bytes);
      OC_TRY_VOID(wait.MayGoOn());
      continue;
    }
    const bool listen = stream_->plain() && step->wait_for == POLLOUT;
    OC_TRY(ready, wait.For(stream_->fd(), static_cast<short>(step->wait_for | (listen ? POLLIN : 0))));
    if (listen && (ready & POLLIN) != 0 && (ready & POLLOUT) == 0) return false;
  }
  return true;
}

Result<size_t> HttpLink::ReadInto(char* into, size_t size, const HttpWait& wait) {
  while (true) {
    auto step = stream_->Read(into, size);
    if (!step || step->end) lost_ = true;
    if (!step) return Fail(std::move(step).error());
    if (step->bytes > 0) heard_ = true;
    if (step->wait_for == 0) {
      OC_TRY_VOID(wait.MayGoOn());
      return step->bytes;
    }
    OC_TRY_VOID(wait.For(stream_->fd(), step->wait_for));
  }
}

Result<bool> HttpLink::ReadMore(const HttpWait& wait) {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_, begin_ = 0;
  }
  // The first byte of an answer takes its time: looking before waiting would be in vain.
  if (!heard_ && stream_->plain()) OC_TRY_VOID(wait.For(stream_->fd(), POLLIN));
  OC_TRY(size, ReadInto(buffer_.get() + end_, kRoom - end_, wait));
  end_ += size;
  return size > 0;
}

void HttpLink::AckNow() const {
  const int on = 1;
  (void)setsockopt(stream_->fd(), IPPROTO_TCP, TCP_QUICKACK, &on, sizeof on);
}

bool HttpLink::Fresh() const {
  pollfd waiting{stream_->fd(), POLLIN, 0};
  return !lost_ && begin_ == end_ && poll(&waiting, 1, 0) == 0;
}

}  // namespace overcap
