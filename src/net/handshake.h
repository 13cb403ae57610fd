// SPDX-License-Identifier: Apache-2.0
// Both ends of a connection prove that they know the same key, without sending it
// (docs/formats/node-link.md, "Who may speak").
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/fd.h"
#include "sys/random.h"

namespace overcap {

std::array<uint8_t, 32> HmacSha256(std::string_view key, std::string_view message);

// 32 random bytes.
struct LinkKey {
  std::string bytes;

  static LinkKey Make(Random& random);
  static std::optional<LinkKey> FromHex(std::string_view hex);  // 64 lower-case digits, else nullopt
  std::string Hex() const;
};

class Handshake {
 public:
  enum class Role { kHead, kNode };
  Handshake(Role role, LinkKey key, Random& random);

  // Writes and reads what goes without waiting, and not a byte more than the handshake has: what follows is
  // left in the socket. True: the other end knows the key. kDenied: it does not, kUnavailable: it is gone;
  // close the connection.
  Result<bool> Step(const Fd& fd);

 private:
  Result<void> Send(const Fd& fd, std::string_view bytes);
  Result<void> Answer(const Fd& fd);
  bool TheirsIsRight() const;

  Role role_;
  LinkKey key_;
  std::string challenge_;  // ours
  std::string received_;   // theirs, then their answer to ours
  bool challenged_ = false, answered_ = false;
};

}  // namespace overcap
