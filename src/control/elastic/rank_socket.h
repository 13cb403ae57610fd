// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"
#include "sys/fd.h"

namespace overcap {

// Where ranks tell their agent that they live and that they have saved (docs/formats/elastic.md, "Ranks and
// their agent").
class RankSocket {
 public:
  struct Word {
    bool checkpoint = false;  // else a heartbeat
    int64_t epoch = 0;
    int rank = 0;
    int64_t step = -1;
  };

  static Result<RankSocket> Make(const std::string& name);

  int PollFd() const { return fd_.Get(); }
  const std::string& name() const { return name_; }  // for OVERCAP_ELASTIC_SOCKET
  // All that have come; `take` says what a rank that has saved is told: true is "yield".
  void Act(const std::function<bool(const Word&)>& take);

  // nullopt when it is no word of ours.
  static Result<Word> Parse(std::string_view text);

 private:
  Fd fd_;
  std::string name_;
};

}  // namespace overcap
