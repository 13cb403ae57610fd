// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/json_writer.h"
#include "sys/clock.h"

namespace overcap {

// events.jsonl of a launch folder (docs/formats/elastic.md). A full disk loses lines, never the job.
class GroupEvents {
 public:
  GroupEvents(const Clock& clock, std::string path) : clock_(clock), path_(std::move(path)) {}
  void Add(const char* event, const std::function<void(JsonWriter*)>& fields = nullptr);

 private:
  const Clock& clock_;
  const std::string path_;
};

}  // namespace overcap
