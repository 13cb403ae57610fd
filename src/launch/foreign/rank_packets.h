// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

// The node process's answer to a rank that has come to the socket of the host: one packet. The rank's own
// packet is its number, with the read ends of its stdout and stderr beside it.
struct NodeAnswer {
  enum class Kind { kGo, kAlone, kStopped };
  Kind kind = Kind::kGo;
  std::string master_addr;  // kGo
  int master_port = 0;
  std::string reason;  // kAlone: why there is no link
};
std::string EncodeAnswer(const NodeAnswer& answer);
Result<NodeAnswer> ParseAnswer(std::string_view packet);

}  // namespace overcap
