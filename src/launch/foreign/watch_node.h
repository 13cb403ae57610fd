// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "launch/foreign/launch_contact.h"
#include "net/handshake.h"
#include "sys/fd.h"

namespace overcap {

// How patient the node process is, in microseconds.
struct WatchTimes {
  int64_t search = 10'000'000;      // for the head to be found
  int64_t linger = 500'000;         // for what ranks left behind
  int64_t stray_grace = 1'000'000;  // between TERM and KILL of that
  int64_t kill = 10'000'000;        // KILL is repeated so long before giving up
  int64_t alone = 30'000'000;       // for ranks to come and be told that there is no head
  int64_t part = 2'000'000;         // for the head to take the last word
};

struct WatchRequest {
  LaunchContact contact;
  LinkKey key;
  std::string host;     // its name, as the launcher calls it
  int node_rank = -1;   // -1: not known
  int local_ranks = 1;  // that will come
  WatchTimes times;
};

// The node process of a host: lets the ranks that come to `listener` go on when the head has said where rank
// 0 is, sends it their output and their ends, and stops them when it says so or is gone. Returns when nothing
// is left of them. Takes over the process: signals are ignored from now on, and the caller has only to exit.
void RunWatchNode(Fd listener, const WatchRequest& request);

}  // namespace overcap
