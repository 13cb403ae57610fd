// SPDX-License-Identifier: Apache-2.0
#include "stores/sftp/sftp_packet.h"

namespace overcap {
namespace {

constexpr uint32_t kHasSize = 1, kHasOwner = 2, kHasMode = 4, kHasTimes = 8, kHasMore = 0x80000000;

// Takes values off the front; once something is missing, all that follows is nothing.
class Taker {
 public:
  explicit Taker(std::string_view bytes) : rest_(bytes) {}

  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  uint64_t U64() { return Number(8); }
  std::string_view Text() {
    const uint32_t size = U32();
    if (size > rest_.size()) ok_ = false;
    if (!ok_) return {};
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  bool ok() const { return ok_; }
  size_t left() const { return rest_.size(); }

 private:
  uint64_t Number(size_t bytes) {
    if (rest_.size() < bytes) ok_ = false;
    if (!ok_) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(bytes);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

SftpAttributes TakeAttributes(Taker* from) {
  SftpAttributes attributes;
  const uint32_t flags = from->U32();
  if ((flags & kHasSize) != 0) attributes.size = static_cast<int64_t>(from->U64() & INT64_MAX);
  if ((flags & kHasOwner) != 0) from->U64();
  if ((flags & kHasMode) != 0) attributes.mode = from->U32();
  if ((flags & kHasTimes) != 0) {
    from->U32();
    attributes.modified = from->U32();
  }
  if ((flags & kHasMore) != 0) {
    for (uint32_t count = from->U32(); count > 0 && from->ok(); --count) {
      from->Text();
      from->Text();
    }
  }
  return attributes;
}

void AppendNumber(std::string* out, uint64_t value, int bytes) {
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift));
}

}  // namespace

SftpBody& SftpBody::U32(uint32_t value) {
  AppendNumber(&bytes_, value, 4);
  return *this;
}

SftpBody& SftpBody::U64(uint64_t value) {
  AppendNumber(&bytes_, value, 8);
  return *this;
}

SftpBody& SftpBody::Text(std::string_view bytes) {
  U32(static_cast<uint32_t>(bytes.size()));
  bytes_ += bytes;
  return *this;
}

std::string SftpHead(SftpType type, uint32_t id, size_t body_size) {
  std::string head;
  AppendNumber(&head, body_size + 5, 4);
  head.push_back(static_cast<char>(type));
  AppendNumber(&head, id, 4);
  return head;
}

std::string SftpInit() {
  return SftpHead(SftpType::kInit, 3, 0);
}

std::optional<SftpStatus> ParseSftpStatus(std::string_view body) {
  Taker taker(body);
  SftpStatus status;
  status.code = static_cast<SftpCode>(taker.U32());
  if (!taker.ok()) return std::nullopt;
  status.message = std::string(taker.Text().substr(0, 1000));  // some servers send none
  return status;
}

std::optional<std::string> ParseSftpText(std::string_view body) {
  Taker taker(body);
  const std::string_view text = taker.Text();
  if (!taker.ok()) return std::nullopt;
  return std::string(text);
}

std::optional<SftpAttributes> ParseSftpAttributes(std::string_view body) {
  Taker taker(body);
  const SftpAttributes attributes = TakeAttributes(&taker);
  if (!taker.ok()) return std::nullopt;
  return attributes;
}

std::optional<std::vector<SftpEntry>> ParseSftpNames(std::string_view body) {
  Taker taker(body);
  const uint32_t count = taker.U32();
  std::vector<SftpEntry> entries;
  for (uint32_t i = 0; i < count; ++i) {
    SftpEntry entry;
    entry.name = std::string(taker.Text());
    taker.Text();  // as `ls -l` would show it
    entry.attributes = TakeAttributes(&taker);
    if (!taker.ok()) return std::nullopt;
    entries.push_back(std::move(entry));
  }
  if (!taker.ok()) return std::nullopt;
  return entries;
}

std::optional<SftpVersion> ParseSftpVersion(std::string_view body) {
  Taker taker(body);
  SftpVersion version;
  version.version = taker.U32();
  while (taker.ok() && taker.left() > 0) {
    const std::string name(taker.Text());
    version.extensions[name] = std::string(taker.Text());
  }
  if (!taker.ok()) return std::nullopt;
  return version;
}

std::optional<SftpLimits> ParseSftpLimits(std::string_view body) {
  Taker taker(body);
  SftpLimits limits;
  limits.packet = taker.U64();
  limits.read = taker.U64();
  limits.write = taker.U64();
  limits.handles = taker.U64();
  if (!taker.ok()) return std::nullopt;
  return limits;
}

uint32_t SftpNumber(std::string_view bytes) {
  return Taker(bytes).U32();
}

SftpFraming TakeSftpFrame(std::string_view bytes, SftpFrame* frame) {
  if (bytes.size() < 4) return SftpFraming::kMore;
  const uint32_t size = SftpNumber(bytes);
  if (size < 5 || size > kMostSftpPacket) return SftpFraming::kBroken;
  if (bytes.size() < size + 4) return SftpFraming::kMore;
  frame->type = static_cast<SftpType>(bytes[4]);
  frame->body = bytes.substr(5, size - 1);
  frame->size = size + 4;
  return SftpFraming::kWhole;
}

}  // namespace overcap
