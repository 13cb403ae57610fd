// SPDX-License-Identifier: Apache-2.0
// What the head of a fan-out and a node that pulls a store say to each other: docs/formats/fanout.md. Parts
// of the messages in fanout_messages.h. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace overcap::fanout {

// To the node.
struct ListedObject {
  std::string key;
  int64_t size = 0, modified_us = 0;
  std::string version, md5;
  bool operator==(const ListedObject&) const = default;
};
struct Listing {
  std::vector<ListedObject> objects;
  bool operator==(const Listing&) const = default;
};
struct Pull {
  int protocol = 1;
  std::string target;  // as in Start
  bool force = false;
  std::string location;  // for messages
  std::string ca;        // certificates (PEM) to trust in the place of the system's; "": those
  bool operator==(const Pull&) const = default;
};
struct Where {
  int64_t request = 0;
  std::string url;    // "": none
  std::string error;  // why there is none
  bool operator==(const Where&) const = default;
};

// To the head.
struct Question {
  int64_t request = 0;
  std::string key;
  bool operator==(const Question&) const = default;
};
struct Known {
  std::string tree;  // hex
  int64_t files = 0, bytes = 0, copied = 0, copied_bytes = 0;
  bool operator==(const Known&) const = default;
};
struct NotPulled {
  Error error;
};

std::string EncodeOne(const Listing& message);
std::string EncodeOne(const Pull& message);
std::string EncodeOne(const Where& message);
std::string EncodeOne(const Question& message);
std::string EncodeOne(const Known& message);

Result<Listing> DecodeListing(const nlohmann::json& object);
Result<Pull> DecodePull(const nlohmann::json& object);
Result<Where> DecodeWhere(const nlohmann::json& object);
Result<Question> DecodeQuestion(const nlohmann::json& object);
Result<Known> DecodeKnown(const nlohmann::json& object);

}  // namespace overcap::fanout
