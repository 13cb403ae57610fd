// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "launch/detect/programs.h"

namespace overcap {

// Programs that answer what a test says, by their whole command line ("squeue -h -j 4 -o %T") or, when there
// is no such line, by their name alone.
class FakePrograms : public Programs {
 public:
  void Answer(const std::string& line, std::string output, int exit_status = 0) {
    answers_[line] = Captured{{exit_status, 0}, std::move(output)};
    Install(line.substr(0, line.find(' ')));
  }
  void Hang(const std::string& name) {
    hanging_.insert(name);
    Install(name);
  }
  void Install(const std::string& name, const std::string& folder = "/opt/site/bin") {
    places_.try_emplace(name, StrCat(folder, "/", name));
  }
  const std::vector<std::string>& lines() const { return lines_; }  // that were run, in order

  std::string Find(std::string_view name) const override {
    const auto place = places_.find(std::string(name));
    return place == places_.end() ? "" : place->second;
  }
  Result<Captured> Run(const std::vector<std::string>& argv, std::chrono::milliseconds) override {
    const std::string line = Join(argv, " ");
    lines_.push_back(line);
    if (Find(argv[0]).empty()) {
      return Fail(ErrorCode::kNotFound, StrCat("command '", argv[0], "' does not exist"));
    }
    if (hanging_.contains(argv[0])) {
      return Fail(ErrorCode::kUnavailable, StrCat("'", argv[0], "' did not end in time"));
    }
    auto answer = answers_.find(line);
    if (answer == answers_.end()) answer = answers_.find(argv[0]);
    if (answer == answers_.end()) return Captured{{1, 0}, StrCat("no answer to: ", line)};
    return answer->second;
  }

 private:
  std::map<std::string, Captured> answers_;
  std::map<std::string, std::string> places_;
  std::set<std::string> hanging_;
  std::vector<std::string> lines_;
};

}  // namespace overcap
