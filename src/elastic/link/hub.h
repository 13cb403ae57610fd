// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/messages.h"
#include "net/frame.h"
#include "net/handshake.h"
#include "sys/clock.h"
#include "sys/fd.h"
#include "sys/random.h"

namespace overcap::elastic {

class LeaderState;

// The leader's end of all connections: takes what members say to its LeaderState, and sends what that wants
// said. Thousands of members behind one descriptor to wait for. Nothing here waits.
class Hub {
 public:
  // `listener` is borrowed.
  static Result<std::unique_ptr<Hub>> Make(const Fd& listener, LinkKey key, const Clock& clock,
                                           Random* random);

  int PollFd() const { return epoll_.Get(); }
  int64_t NextUs() const;         // who has not proven in time that it knows the key is dropped
  void Act(LeaderState* state);   // what has come
  void Send(LeaderState* state);  // what is to be said, and what is still to be sent
  bool Rests() const;             // nothing is to be read for a moment; NextUs() tells until when
  size_t Pending() const;         // connections that have not taken all yet
  size_t Count() const { return peers_.size(); }

 private:
  struct Peer {
    Fd fd;
    std::optional<Handshake> handshake;  // until it is done
    int64_t until_us = 0;                // for the handshake
    FrameReader in{kMaxElasticFrame};
    FrameWriter out;
    bool joined = false, closing = false, writes = false;
  };

  Hub(const Fd& listener, LinkKey key, const Clock& clock, Random* random)
      : listener_(listener), key_(std::move(key)), clock_(clock), random_(*random) {}
  void AcceptAll();
  void Serve(int number, Peer* peer, LeaderState* state);
  bool Handle(int number, Peer* peer, std::string_view frame, LeaderState* state);
  void Flush(int number, Peer* peer, LeaderState* state);
  void Close(int number, LeaderState* state);
  void Watch(int number, Peer* peer, bool writes);

  const Fd& listener_;
  const LinkKey key_;
  const Clock& clock_;
  Random& random_;
  Fd epoll_;
  std::map<int, std::unique_ptr<Peer>> peers_;
  std::vector<int> strangers_;  // whose handshake is not done
  std::vector<int> unsent_;
  int next_number_ = 1;
  int64_t rest_until_us_ = 0;
};

}  // namespace overcap::elastic
