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
  bool again = false;  // the id may be used again: a job that has ended under it was another one
  std::string asked;   // as the user wrote it, where that was in torchrun's words
  std::string Text() const;
};

constexpr int kEtcdPort = 2379;
constexpr int kTorchPort = 29400;  // torchrun's own default

// kUsage names what is wrong with it.
Result<RendezvousPlace> ParseRendezvous(std::string_view text);

// torchrun's flags of these names; "" and 0: not given.
struct TorchPlace {
  std::string_view backend = {}, endpoint = {}, id = {}, master_addr = {};
  int master_port = 0;
  int max_nodes = 1;
};

// Where the agents meet, and the MASTER_PORT of their ranks where torchrun has a fixed one (the static
// backend); else 0.
struct TorchMeeting {
  RendezvousPlace place;
  int master_port = 0;
};
Result<TorchMeeting> TorchRendezvous(const TorchPlace& asked);

// The port at which agents meet whose ranks meet at `master_port`.
constexpr int MeetingPort(int master_port) {
  return master_port > 20'000 ? master_port - 10'000 : master_port + 10'000;
}

// Letters, digits, '.', '_' and '-', at most 100.
bool IsRendezvousId(std::string_view id);

// `id` where it is one; else one that follows from it.
std::string RendezvousIdOf(std::string_view id);

}  // namespace overcap::elastic
