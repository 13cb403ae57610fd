// SPDX-License-Identifier: Apache-2.0
// What `overcap launch` (the head) and the hosts of its ranks say to each other: docs/formats/node-link.md.
// Encode gives the content of one frame, Decode reads it back; kCorrupt for anything the format does not
// allow. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace overcap::node_link {

constexpr int kProtocol = 1;
// The node's first bytes behind ssh: what login scripts print before them is no part of the link.
constexpr std::string_view kPreamble{"\0overcap link 1\n", 16};

// To the node.
struct Start {
  int node_rank = 0, first_rank = 0, ranks = 1, world_size = 1;
  std::vector<std::string> command, env;  // never empty; NAME=VALUE
  std::string folder;
  std::string master_addr;
  int master_port = 0;
  int64_t grace_us = 10'000'000;
  std::string cpu_bind;  // as --cpu-bind takes it; "": not bound
  bool operator==(const Start&) const = default;
};
struct Place {
  std::string master_addr;
  int master_port = 0;
  bool operator==(const Place&) const = default;
};
struct Stacks {
  bool operator==(const Stacks&) const = default;
};
struct Warn {  // USR1 to every process of the ranks that handles it
  bool operator==(const Warn&) const = default;
};
struct Stop {
  int64_t grace_us = 0;      // 0: KILL at once
  bool interrupted = false;  // by Ctrl-C: INT in the place of TERM
  bool operator==(const Stop&) const = default;
};
using ToNode = std::variant<Start, Place, Stacks, Warn, Stop>;

// To the head.
struct Hello {
  int protocol = kProtocol;
  std::string version, host;
  std::string address;  // that the other hosts may use for this one; "" when not known
  int free_port = 0;    // 0: none was found
  int node_rank = -1;   // under a launcher: as it told its ranks; -1: not known
  bool operator==(const Hello&) const = default;
};
struct Begun {
  int rank = 0;
  int64_t pid = 0;
  bool operator==(const Begun&) const = default;
};
struct Output {
  int rank = 0, stream = 1;
  std::string_view bytes;  // into the frame it was decoded from
  bool operator==(const Output&) const = default;
};
struct Ended {
  int rank = 0, exit_status = 0, signal = 0;
  bool known = true;
  bool out_of_memory = false;
  std::string reason;  // why it could not be started; else ""
  bool operator==(const Ended&) const = default;
};
struct Stack {
  int rank = 0;
  std::string text;
  bool operator==(const Stack&) const = default;
};
struct Note {
  std::string text;
  bool operator==(const Note&) const = default;
};
struct NothingLeft {
  bool operator==(const NothingLeft&) const = default;
};
using ToHead = std::variant<Hello, Begun, Output, Ended, Stack, Note, NothingLeft>;

std::string Encode(const ToNode& message);
std::string Encode(const ToHead& message);

// Checked: ranks and ports in their range, a start with a command, a stream that is 1 or 2.
Result<ToNode> DecodeToNode(std::string_view frame);
Result<ToHead> DecodeToHead(std::string_view frame);

}  // namespace overcap::node_link
