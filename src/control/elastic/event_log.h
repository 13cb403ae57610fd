// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/json_writer.h"
#include "sys/clock.h"

namespace overcap {

// events.jsonl of a launch folder (docs/formats/elastic.md), and what the leader tells of the group in that
// of the job. A full disk loses lines, never the job.
class GroupEvents {
 public:
  // `job_path`: "" where there is no job.
  GroupEvents(const Clock& clock, std::string path, std::string job_path, std::string host,
              std::string attempt)
      : clock_(clock),
        path_(std::move(path)),
        job_path_(std::move(job_path)),
        host_(std::move(host)),
        attempt_(std::move(attempt)) {}

  using Fields = std::function<void(JsonWriter*)>;
  void Add(const char* event, const Fields& fields = nullptr);
  // The same, and to the job's own log.
  void AddForJob(const char* event, const Fields& fields = nullptr);

 private:
  const Clock& clock_;
  const std::string path_, job_path_, host_, attempt_;
};

}  // namespace overcap
