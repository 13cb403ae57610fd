// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "elastic/etcd/etcd_client.h"
#include "elastic/place.h"
#include "elastic/rendezvous.h"
#include "sys/clock.h"
#include "sys/random.h"

namespace overcap::elastic {

struct EtcdRendezvousOptions {
  EtcdOptions etcd;
  std::string agent;
  std::string address;  // by which others reach us; "": all that this host has
  ElasticTimes times;
};

// A lease in etcd, renewed by a thread of its own: calls wait for etcd there, and nowhere else.
class EtcdRendezvous : public Rendezvous {
 public:
  static Result<std::unique_ptr<EtcdRendezvous>> Make(const RendezvousPlace& place,
                                                      EtcdRendezvousOptions options, const Clock& clock,
                                                      uint64_t seed);
  ~EtcdRendezvous() override;

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
  EtcdRendezvous(const RendezvousPlace& place, EtcdRendezvousOptions options, const Clock& clock,
                 uint64_t seed);

  // The thread.
  void Work();
  void Seek();
  void LeadOn();
  bool Store();  // false: etcd did not answer
  void Lose();
  void Say(const Standing& standing);
  void SayTrouble(const Error& error);
  bool WaitUntil(int64_t until_us);  // false: it is to stop
  ElasticRecord Ours(ElasticRecord record) const {
    return other_ && record == *other_ ? record.Anew() : record;
  }

  const EtcdRendezvousOptions options_;
  const Clock& clock_;
  const std::string leader_key_, record_key_;
  Fd listener_, wake_;
  LeaderContact contact_;  // ours
  std::string own_value_;
  EtcdClient client_;
  SeededRandom random_;

  // Of the owner's thread.
  Standing standing_;
  std::string trouble_;
  std::optional<ElasticRecord> kept_;

  // Of the thread alone.
  Standing now_;
  int64_t lease_ = 0, renew_us_ = 0, back_off_us_ = 0;
  int64_t record_revision_ = 0;         // as we have seen it last; 0: there is none
  int64_t store_again_us_ = kNever;     // what could not be kept
  std::optional<ElasticRecord> other_;  // of a job that ended and is not ours

  std::mutex mutex_;  // guards what follows
  std::condition_variable asked_;
  bool stop_ = false, look_ = false, over_ = false, leave_ = false, left_ = false;
  std::optional<ElasticRecord> to_keep_, told_kept_;
  std::optional<Standing> told_;
  std::optional<Error> fatal_;
  std::string told_trouble_;

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace overcap::elastic
