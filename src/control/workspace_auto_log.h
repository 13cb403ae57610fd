// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace overcap {

// What a service that nobody looks at has to say: a line each, with the time. Never fails and never waits for
// a reader: what cannot be written is lost.
class AutoLog {
 public:
  // `path` "": stderr. `in_job`: important lines also go to stderr where that is another file, the job's log.
  AutoLog(std::string path, bool in_job) : path_(std::move(path)), in_job_(in_job) {}
  void Write(std::string_view line, bool important);

 private:
  const std::string path_;
  const bool in_job_;
};

}  // namespace overcap
