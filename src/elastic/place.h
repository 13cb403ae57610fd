// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace overcap::elastic {

// What --rdzv says: etcd://H1:2379,H2:2379/ID, etcds://..., tcp://HOST:PORT/ID, auto or auto:ID.
struct RendezvousPlace {
  enum class Kind { kAuto, kTcp, kEtcd };
  Kind kind = Kind::kAuto;
  bool tls = false;
  std::vector<std::pair<std::string, int>> endpoints;  // host, port
  std::string id;                                      // "": only this agent will ever know it (auto)
  // tcp: whether this node is the host, where a scheduler tells. Then several endpoints may be ports of that
  // host: the first that is free is taken, and the others look at all.
  std::optional<bool> here = {};
  bool unnamed = false;  // nobody gave an id: what ended under this one was another job
  std::string Text() const;
};

constexpr int kEtcdPort = 2379;
constexpr int kTorchPort = 29400;  // torchrun's own default

// kUsage names what is wrong with it.
Result<RendezvousPlace> ParseRendezvous(std::string_view text);

// As torchrun's --rdzv-backend, --rdzv-endpoint and --rdzv-id say it; "" stands for what was not given.
Result<RendezvousPlace> TorchRendezvous(std::string_view backend, std::string_view endpoint,
                                        std::string_view id);

// Letters, digits, '.', '_' and '-', at most 100.
bool IsRendezvousId(std::string_view id);

}  // namespace overcap::elastic
