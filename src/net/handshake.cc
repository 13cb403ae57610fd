// SPDX-License-Identifier: Apache-2.0
// The plain functions instead of EVP: its first use costs more than the whole handshake.
#define OPENSSL_SUPPRESS_DEPRECATED
#include "net/handshake.h"

#include <algorithm>
#include <cerrno>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/socket.h>

namespace overcap {
namespace {

constexpr size_t kBytes = 32;
constexpr size_t kBlock = 64;

std::string RandomBytes(Random& random) {
  std::string bytes;
  while (bytes.size() < kBytes) {
    const uint64_t bits = random.Next();
    bytes.append(reinterpret_cast<const char*>(&bits), sizeof bits);
  }
  return bytes;
}

std::string_view NameOf(Handshake::Role role) {
  return role == Handshake::Role::kHead ? "head" : "node";
}

Handshake::Role OtherOf(Handshake::Role role) {
  return role == Handshake::Role::kHead ? Handshake::Role::kNode : Handshake::Role::kHead;
}

std::string AnswerOf(Handshake::Role role, const LinkKey& key, std::string_view challenge) {
  const auto digest = HmacSha256(key.bytes, std::string(NameOf(role)).append(challenge));
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

void Hash(const std::string& pad, std::string_view message, uint8_t* digest) {
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, pad.data(), pad.size());
  SHA256_Update(&context, message.data(), message.size());
  SHA256_Final(digest, &context);
}

int HexValue(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  return -1;
}

tl::unexpected<Error> Gone() {
  return Fail(ErrorCode::kUnavailable, "the other end closed the connection");
}

}  // namespace

std::array<uint8_t, 32> HmacSha256(std::string_view key, std::string_view message) {
  std::array<uint8_t, 32> digest;
  std::string block(key);
  if (block.size() > kBlock) {
    Hash("", key, digest.data());
    block.assign(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  block.resize(kBlock, '\0');
  std::string inner = block, outer = block;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  Hash(inner, message, digest.data());
  const std::string first(reinterpret_cast<const char*>(digest.data()), digest.size());
  Hash(outer, first, digest.data());
  return digest;
}

LinkKey LinkKey::Make(Random& random) {
  return {RandomBytes(random)};
}

std::optional<LinkKey> LinkKey::FromHex(std::string_view hex) {
  if (hex.size() != 2 * kBytes) return std::nullopt;
  LinkKey key;
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = HexValue(hex[i]), low = HexValue(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    key.bytes.push_back(static_cast<char>(high << 4 | low));
  }
  return key;
}

std::string LinkKey::Hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (const char byte : bytes) {
    hex.push_back(kDigits[static_cast<uint8_t>(byte) >> 4]);
    hex.push_back(kDigits[byte & 15]);
  }
  return hex;
}

Handshake::Handshake(Role role, LinkKey key, Random& random)
    : role_(role), key_(std::move(key)), challenge_(RandomBytes(random)) {}

// A fresh socket always has room for so little: less than all means that it broke.
Result<void> Handshake::Send(const Fd& fd, std::string_view bytes) {
  ssize_t n;
  do {
    n = send(fd.Get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(bytes.size())) return Gone();
  return {};
}

Result<void> Handshake::Answer(const Fd& fd) {
  answered_ = true;
  return Send(fd, AnswerOf(role_, key_, std::string_view(received_).substr(0, kBytes)));
}

bool Handshake::TheirsIsRight() const {
  const std::string right = AnswerOf(OtherOf(role_), key_, challenge_);
  return CRYPTO_memcmp(right.data(), received_.data() + kBytes, kBytes) == 0;
}

Result<bool> Handshake::Step(const Fd& fd) {
  if (!challenged_) OC_TRY_VOID(Send(fd, challenge_));
  challenged_ = true;
  while (received_.size() < 2 * kBytes) {
    char chunk[2 * kBytes];
    const ssize_t n = recv(fd.Get(), chunk, 2 * kBytes - received_.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n <= 0) return Gone();
    received_.append(chunk, static_cast<size_t>(n));
    if (received_.size() >= kBytes && !answered_) OC_TRY_VOID(Answer(fd));
  }
  if (!TheirsIsRight()) return Fail(ErrorCode::kDenied, "the other end does not know the key of this launch");
  return true;
}

}  // namespace overcap
