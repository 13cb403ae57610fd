// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "elastic/place.h"
#include "elastic/rendezvous.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap::elastic {

struct HostRendezvousOptions {
  std::string folder;  // <root>/elastic: records and locks
  std::string agent;   // our name among the agents
  std::string secret;  // tcp: what the key is made of beside the id; "" for none
  ElasticTimes times;
};

// `auto` (a lock in the folder) and `tcp://` (a port): who has it leads as long as its process lives.
class HostRendezvous : public Rendezvous {
 public:
  // kUsage or kUnavailable when the host of tcp:// cannot be found.
  static Result<std::unique_ptr<HostRendezvous>> Make(const RendezvousPlace& place,
                                                      HostRendezvousOptions options, const Clock& clock,
                                                      Random* random);

  int64_t Prepare(std::vector<pollfd>* fds) override;
  Result<void> Act() override;
  const Standing& standing() const override { return standing_; }
  const Fd& Listener() const override { return listener_; }
  void Keep(const ElasticRecord& record) override;
  std::optional<ElasticRecord> TakeKept() override;
  void LookAgain() override;
  void StartOver() override;
  void Leave() override;
  std::string Trouble() const override { return trouble_; }

 private:
  HostRendezvous(const RendezvousPlace& place, HostRendezvousOptions options, const Clock& clock,
                 Random* random)
      : place_(place), options_(std::move(options)), clock_(clock), random_(*random) {}

  std::string PathOf(std::string_view ending) const;
  Result<ElasticRecord> ReadRecord() const;
  Result<void> TryLock();
  Result<void> TryPort();
  Result<bool> HoldLock();
  int PortToTry() const;
  Result<std::optional<Fd>> ListenAnywhere();
  Result<void> Lead();
  Result<void> FollowContact();
  void FollowPort();
  void Later();

  const RendezvousPlace place_;
  const HostRendezvousOptions options_;
  const Clock& clock_;
  Random& random_;
  std::vector<std::string> addresses_;  // tcp: of the host
  std::string own_address_;             // tcp: of these the one that is ours; "": we are elsewhere
  size_t looks_ = 0;                    // tcp: how often the leader was not found
  Standing standing_;
  Fd lock_, listener_;
  std::optional<ElasticRecord> kept_;
  std::optional<ElasticRecord> other_;  // of a job that ended and is not ours
  int64_t next_us_ = 0, back_off_us_ = 0;
  std::string trouble_;
};

}  // namespace overcap::elastic
