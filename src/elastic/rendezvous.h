// SPDX-License-Identifier: Apache-2.0
// Who leads a job, and what outlives each leader (docs/formats/elastic.md, "Rendezvous"). The seam between
// the state machines and etcd, a port, or a lock. src/elastic/testing/rendezvous_contract.h is what all of
// them keep.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
#include <string>
#include <vector>

#include "base/result.h"
#include "elastic/record.h"
#include "elastic/times.h"
#include "net/handshake.h"
#include "sys/fd.h"

namespace overcap::elastic {

// How a leader is reached.
struct LeaderContact {
  std::string agent;
  std::vector<std::string> addresses;  // literal, the best first
  int port = 0;
  LinkKey key;
};

struct Standing {
  enum class Kind {
    kSeeking,   // nobody knows yet
    kLeads,     // we do: `term`, `right_until_us`, `quiet_us`; `record` as it was found
    kFollows,   // `leader` does
    kFinished,  // the job has ended: `record.ended`
  };
  Kind kind = Kind::kSeeking;
  int64_t term = 0;
  int64_t right_until_us = 0;  // monotonic; kNever: as long as this process lives
  int64_t quiet_us = 0;        // until then members of an earlier leader may have ranks
  ElasticRecord record;
  LeaderContact leader;
};

// Nothing here waits, but Leave(). One thread.
class Rendezvous {
 public:
  virtual ~Rendezvous() = default;

  // What to wait for, and when to call Act() at the latest (monotonic; kNever: not by itself).
  virtual int64_t Prepare(std::vector<pollfd>* fds) = 0;
  // Takes what has come. An error is for good: wrong credentials, an address that cannot be.
  virtual Result<void> Act() = 0;
  virtual const Standing& standing() const = 0;
  // Where members of ours come in while we lead.
  virtual const Fd& Listener() const = 0;

  // Only while we lead; TakeKept() gives it back once it will outlive us. It never does when another has led
  // since. Asked again, the newer one counts.
  virtual void Keep(const ElasticRecord& record) = 0;
  virtual std::optional<ElasticRecord> TakeKept() = 0;

  virtual void LookAgain() = 0;             // the leader that was told does not answer
  virtual void StartOver() = 0;             // kFinished, but that was another job: seek again, without it
  virtual void Leave() = 0;                 // another may lead now; bounded, at most a second
  virtual std::string Trouble() const = 0;  // "" or why nothing is known: what was tried, and what it said
};

}  // namespace overcap::elastic
