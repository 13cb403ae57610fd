// SPDX-License-Identifier: Apache-2.0
// Numbers and byte strings of the binary formats (docs/formats/snapshot.md): how they are written, and a
// reader that takes any bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "snapshot/sha256.h"

namespace overcap {

constexpr size_t kVarintMost = 10;

// Writes at most kVarintMost bytes; where it ended.
inline char* PutVarint(char* to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

inline void AppendVarint(std::string* out, uint64_t value) {
  char buffer[kVarintMost];
  out->append(buffer, static_cast<size_t>(PutVarint(buffer, value) - buffer));
}

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}

inline void AppendSvarint(std::string* out, int64_t value) {
  AppendVarint(out, ZigZag(value));
}

inline void AppendBytes(std::string* out, std::string_view bytes) {
  AppendVarint(out, bytes.size());
  out->append(bytes);
}

inline std::string_view DigestBytes(const Digest& id) {
  return {reinterpret_cast<const char*>(id.bytes.data()), id.bytes.size()};
}

inline void AppendDigest(std::string* out, const Digest& id) {
  out->append(DigestBytes(id));
}

// Takes values off the front. After the first that is not there or not allowed ok() is false, nothing is left
// and every further value is zero or empty, so that a caller may ask once for several.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool ok() const { return ok_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  bool AtEnd() const { return ok_ && at_ == end_; }  // all of it was read, and it was right
  void Refuse() {
    ok_ = false;
    at_ = end_;
  }

  char Byte() {
    if (at_ != end_) return *at_++;
    Refuse();
    return 0;
  }

  uint64_t Varint() {
    if (at_ != end_ && static_cast<unsigned char>(*at_) < 0x80) return static_cast<unsigned char>(*at_++);
    return LongVarint();
  }

  // A varint that is at most `most`.
  uint64_t VarintUpTo(uint64_t most) {
    const uint64_t value = Varint();
    if (value <= most) return value;
    Refuse();
    return 0;
  }

  int64_t Svarint() {
    const uint64_t value = Varint();
    return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
  }

  // Views into what is read.
  std::string_view Raw(size_t size) {
    if (size > left()) {
      Refuse();
      return {};
    }
    const std::string_view taken(at_, size);
    at_ += size;
    return taken;
  }
  std::string_view Bytes(uint64_t most) { return Raw(VarintUpTo(most)); }

  Digest Id() {
    Digest id;
    const std::string_view taken = Raw(id.bytes.size());
    if (ok_) std::memcpy(id.bytes.data(), taken.data(), id.bytes.size());
    return id;
  }

 private:
  uint64_t LongVarint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const auto byte = static_cast<unsigned char>(*at_++);
      if (shift == 63 && byte > 1) break;
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte >= 0x80) continue;
      if (byte == 0 && shift > 0) break;  // there is a shorter form
      return value;
    }
    Refuse();
    return 0;
  }

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace overcap
