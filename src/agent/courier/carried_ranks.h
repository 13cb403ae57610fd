// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "agent/courier/courier.h"
#include "agent/ranks.h"

namespace overcap {

// Ranks whose logs a courier carries while they run.
class CarriedRanks : public Ranks {
 public:
  CarriedRanks(Ranks* ranks, const std::string& job_dir, Courier* courier)
      : ranks_(*ranks), begin_(job_dir.size() + 1), courier_(*courier) {}

  size_t Size() const override { return ranks_.Size(); }
  int MasterPort() const override { return ranks_.MasterPort(); }
  const std::vector<std::string>& FirstEnvironment() const override { return ranks_.FirstEnvironment(); }
  void NameTask(int task, int attempt) override { ranks_.NameTask(task, attempt); }
  Ending Run(const std::vector<std::string>& logs, GroupObserver* observer) override {
    std::vector<std::string> names;
    for (const std::string& log : logs) names.push_back(log.substr(begin_));
    courier_.Track(names);
    Ending ending = ranks_.Run(logs, observer);
    courier_.Done(names);
    return ending;
  }

 private:
  Ranks& ranks_;
  const size_t begin_;  // of names in the job's folder
  Courier& courier_;
};

}  // namespace overcap
