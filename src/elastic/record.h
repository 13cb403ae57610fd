// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap::elastic {

// What outlives a leader (docs/formats/elastic.md, "Rendezvous").
struct ElasticRecord {
  int64_t term = 0, epoch = 0;
  int restarts = 0;
  int nodes = 0;      // of that epoch
  std::string terms;  // a hash of what all agents have in common; "": nobody has led yet
  struct Ended {
    int status = 0;
    std::string message;
    bool operator==(const Ended&) const = default;
  };
  std::optional<Ended> ended;
  bool operator==(const ElasticRecord&) const = default;

  // What the next job that has no id of its own begins with: numbers go on rising.
  ElasticRecord Anew() const {
    ElasticRecord next;
    next.term = term;
    next.epoch = epoch;
    return next;
  }
};

std::string RecordJson(const ElasticRecord& record);
Result<ElasticRecord> ParseRecord(std::string_view text);  // kCorrupt

}  // namespace overcap::elastic
