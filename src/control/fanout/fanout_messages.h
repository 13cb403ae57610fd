// SPDX-License-Identifier: Apache-2.0
// What the head of a fan-out, its nodes, and nodes among themselves say: docs/formats/fanout.md. Encode gives
// the content of one frame, Decode reads it back; kCorrupt for anything the format does not allow. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "snapshot/sha256.h"

namespace overcap::fanout {

constexpr int kProtocol = 1;
constexpr int64_t kRequestMost = 16 << 20;  // bytes of chunks in one request

struct WantedChunk {
  Digest id;
  uint32_t size = 0;
  bool operator==(const WantedChunk&) const = default;
};

// To the node.
struct Object {
  std::string key, content;
  bool operator==(const Object&) const = default;
};
struct Start {
  int protocol = kProtocol;
  std::string tree, key;  // hex
  std::string target;     // as the user wrote it: the node knows its own variables
  std::vector<std::string> old;
  bool fix = true;
  bool force = false;
  bool operator==(const Start&) const = default;
};
struct Use {
  std::string peer;  // "": the head itself, over this connection
  std::vector<std::string> addresses;
  int port = 0;
  bool head = false;  // it is the head all the same
  bool operator==(const Use&) const = default;
};
struct Data {
  uint64_t request = 0;
  std::string_view answer;  // into the frame it was decoded from: EncodeAnswer
  bool operator==(const Data&) const = default;
};
struct Finish {
  bool operator==(const Finish&) const = default;
};
using ToNode = std::variant<Object, Start, Use, Data, Finish>;

// To the head.
struct Hello {
  int protocol = kProtocol;
  std::string version, host;
  std::vector<std::string> addresses;
  bool operator==(const Hello&) const = default;
};
struct Ask {
  std::string why;
  bool operator==(const Ask&) const = default;
};
struct Get {
  uint64_t request = 0;
  std::vector<WantedChunk> chunks;
  bool operator==(const Get&) const = default;
};
struct Progress {
  int64_t bytes_done = 0, bytes_total = 0;
  bool operator==(const Progress&) const = default;
};
struct Ready {
  int port = 0;  // 0: it does not serve
  int64_t files = 0, bytes = 0, written_files = 0, written_bytes = 0, same_files = 0, removed = 0, fixed = 0;
  int64_t from_peers = 0, from_head = 0, reused = 0;  // bytes
  int64_t failed = 0;
  std::vector<std::string> problems;  // the first of them
  bool operator==(const Ready&) const = default;
};
struct Trouble {
  Error error;
};
using ToHead = std::variant<Hello, Ask, Get, Progress, Ready, Trouble>;

std::string Encode(const ToNode& message);
std::string Encode(const ToHead& message);
Result<ToNode> DecodeToNode(std::string_view frame);
Result<ToHead> DecodeToHead(std::string_view frame);

// The list of chunks in `G`, and all that a request among nodes is. At least one chunk, at most kRequestMost
// bytes.
std::string EncodeChunkList(const std::vector<WantedChunk>& chunks);
Result<std::vector<WantedChunk>> DecodeChunkList(std::string_view bytes);

}  // namespace overcap::fanout
