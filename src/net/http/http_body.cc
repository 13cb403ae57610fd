// SPDX-License-Identifier: Apache-2.0
#include "net/http/http_body.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "net/http/chunk_decoder.h"

namespace overcap {
namespace {

constexpr size_t kMostErrorText = 64 * 1024;
constexpr size_t kAtOnce = 256 * 1024 * 1024;  // memory taken on the word of the server alone

bool IsError(const HttpResponse& head) {
  return head.status >= 300;
}

// Takes the pieces of a body to where they belong.
class BodyEnd {
 public:
  BodyEnd(const HttpResponse& head, const HttpBodyTo& to, const HttpWait& wait)
      : head_(head), to_(to), wait_(wait) {
    if (to.whole != nullptr) most_ = IsError(head) ? std::max(to.most, kMostErrorText) : to.most;
  }

  // False: enough.
  Result<bool> Add(std::string_view piece) {
    if (piece.empty()) return true;
    if (to_.take != nullptr) {
      OC_TRY_VOID((*to_.take)(head_, piece));
      return true;
    }
    const size_t room = most_ - to_.whole->size();
    if (piece.size() > room) {
      if (!IsError(head_)) return Fail(TooLarge());
      to_.whole->append(piece.substr(0, room));
      return false;
    }
    to_.whole->append(piece);
    return true;
  }

  size_t most() const { return most_; }
  Error TooLarge() const {
    return {ErrorCode::kCorrupt,
            StrCat("'", wait_.peer(), "' answers more than the ", most_, " bytes asked for"), ""};
  }

 private:
  const HttpResponse& head_;
  const HttpBodyTo& to_;
  const HttpWait& wait_;
  size_t most_ = 0;
};

// Straight into the caller's memory. Its size is set before: a buffer that had that size is not even cleared.
Result<void> ReadWhole(HttpLink& link, size_t length, std::string* out, const HttpWait& wait) {
  size_t filled = 0;
  out->resize(std::min(length, kAtOnce));
  while (filled < length) {
    if (filled == out->size()) out->resize(std::min(length, 2 * filled));
    char* at = out->data() + filled;
    if (const std::string_view ahead = link.ahead(); !ahead.empty()) {
      const size_t size = std::min(ahead.size(), out->size() - filled);
      std::memcpy(at, ahead.data(), size);
      link.Take(size);
      filled += size;
      continue;
    }
    OC_TRY(size, link.ReadInto(at, out->size() - filled, wait));
    if (size == 0) return Fail(LostConnection(wait.peer(), 0));
    filled += size;
  }
  return {};
}

Result<bool> ReadLength(HttpLink& link, int64_t length, BodyEnd* end, const HttpWait& wait) {
  while (length > 0) {
    if (link.ahead().empty()) {
      OC_TRY(more, link.ReadMore(wait));
      if (!more) return Fail(LostConnection(wait.peer(), 0));
    }
    const std::string_view piece = link.ahead().substr(0, static_cast<size_t>(length));
    OC_TRY(go_on, end->Add(piece));
    if (!go_on) return false;
    link.Take(piece.size());
    length -= static_cast<int64_t>(piece.size());
  }
  return true;
}

Result<bool> ReadUntilClose(HttpLink& link, BodyEnd* end, const HttpWait& wait) {
  while (true) {
    OC_TRY(go_on, end->Add(link.ahead()));
    if (!go_on) return false;
    link.Take(link.ahead().size());
    OC_TRY(more, link.ReadMore(wait));
    if (!more) return true;
  }
}

Result<bool> ReadChunks(HttpLink& link, BodyEnd* end, const HttpWait& wait) {
  ChunkDecoder decoder;
  while (true) {
    std::string_view bytes = link.ahead();
    const size_t before = bytes.size();
    auto data = decoder.Next(&bytes);
    if (!data) return Fail(data.error().code, StrCat("'", wait.peer(), "': ", data.error().message));
    OC_TRY(go_on, end->Add(*data));
    link.Take(before - bytes.size());
    if (decoder.done()) return true;
    if (!go_on) return false;
    if (!link.ahead().empty()) continue;
    OC_TRY(more, link.ReadMore(wait));
    if (!more) return Fail(LostConnection(wait.peer(), 0));
  }
}

}  // namespace

Result<bool> ReadHttpBody(HttpLink& link, const HttpResponse& head, const HttpFraming& framing,
                          const HttpBodyTo& to, const HttpWait& wait) {
  BodyEnd end(head, to, wait);
  if (framing.kind == HttpFraming::Kind::kLength && to.whole != nullptr && !IsError(head)) {
    const auto length = static_cast<size_t>(framing.length);
    if (length > end.most()) return Fail(end.TooLarge());
    OC_TRY_VOID(ReadWhole(link, length, to.whole, wait));
    return true;
  }
  if (to.whole != nullptr) to.whole->clear();
  switch (framing.kind) {
    case HttpFraming::Kind::kLength:
      return ReadLength(link, framing.length, &end, wait);
    case HttpFraming::Kind::kChunked:
      return ReadChunks(link, &end, wait);
    case HttpFraming::Kind::kUntilClose:
      return ReadUntilClose(link, &end, wait);
  }
  return true;
}

}  // namespace overcap
