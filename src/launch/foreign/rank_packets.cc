// SPDX-License-Identifier: Apache-2.0
#include "launch/foreign/rank_packets.h"

#include <vector>

#include "base/text.h"

namespace overcap {

std::string EncodeAnswer(const NodeAnswer& answer) {
  switch (answer.kind) {
    case NodeAnswer::Kind::kGo:
      return StrCat("G ", answer.master_port, " ", answer.master_addr);
    case NodeAnswer::Kind::kAlone:
      return StrCat("A ", answer.reason);
    default:
      return "S";
  }
}

Result<NodeAnswer> ParseAnswer(std::string_view packet) {
  if (packet == "S") return NodeAnswer{NodeAnswer::Kind::kStopped, "", 0, ""};
  if (packet.starts_with("A "))
    return NodeAnswer{NodeAnswer::Kind::kAlone, "", 0, std::string(packet.substr(2))};
  const std::vector<std::string> words = Split(packet, ' ');
  const long long port = words.size() == 3 ? ParseInt(words[1]).value_or(-1) : -1;
  if (words[0] != "G" || port < 0 || port > 65535) {
    return Fail(ErrorCode::kCorrupt, "the node process gave an answer that cannot be read");
  }
  return NodeAnswer{NodeAnswer::Kind::kGo, words[2], static_cast<int>(port), ""};
}

}  // namespace overcap
