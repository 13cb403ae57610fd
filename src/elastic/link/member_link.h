// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/messages.h"
#include "elastic/rendezvous.h"
#include "net/frame.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap::elastic {

// A member's one connection to its leader: tries the leader's addresses, the first that answers and knows the
// key is it. Nothing here waits.
class MemberLink {
 public:
  enum class State { kIdle, kConnecting, kOpen, kFailed };

  MemberLink(const Clock& clock, Random* random) : clock_(clock), random_(*random) {}

  void Begin(const LeaderContact& leader, int64_t within_us);
  void Close();

  int64_t Prepare(std::vector<pollfd>* fds) const;
  // What has come, in its order; kFailed when the connection broke or could not be made (Problem() says why).
  std::vector<ToMember> Act();
  void Send(const ToLeader& message);

  State state() const { return state_; }
  const LeaderContact& leader() const { return leader_; }  // as Begin() was told
  bool TakeOpened();                                       // true once after it was opened
  const std::string& address() const { return address_; }  // ours on it
  const std::string& Problem() const { return problem_; }
  bool Denied() const { return denied_; }  // of the last try: what answered has another key

 private:
  struct Try {
    Fd fd;
    std::optional<Handshake> handshake;  // none: not yet connected
    int64_t at_us = 0;                   // begins then
    std::string address;
  };

  void Advance(Try* one);
  void Break(std::string why);
  void Read(std::vector<ToMember>* got);

  const Clock& clock_;
  Random& random_;
  State state_ = State::kIdle;
  LeaderContact leader_;
  std::vector<Try> tries_;
  int64_t until_us_ = 0;
  Fd fd_;
  bool opened_ = false, denied_ = false;
  FrameReader in_{kMaxElasticFrame};
  FrameWriter out_;
  std::string address_, problem_;
};

}  // namespace overcap::elastic
