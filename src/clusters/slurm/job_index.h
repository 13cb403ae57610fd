// SPDX-License-Identifier: Apache-2.0
// Which jobs of one cluster are open and which have ended last, so that a list needs not read every folder.
// Hints only: jobs/ is the truth, and a hint that is missing costs nothing but time.
//   <root>/clusters/<name>/open/<id>   empty; made before sbatch is called, removed after ended.json was
//                                      written
//   <root>/clusters/<name>/ended       lines "<ended_us> <id>", in the order in which ends were seen
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

class JobIndex {
 public:
  explicit JobIndex(std::string folder) : folder_(std::move(folder)) {}

  void Open(const std::string& id) const;
  void Close(const std::string& id, int64_t ended_us) const;
  void Forget(const std::string& id) const;
  // Of a job whose folder is not there: it may be about to come.
  void ForgetOld(const std::string& id, int64_t now_us) const;

  std::vector<std::string> OpenIds() const;
  // Those that ended last, the latest first. Some may have been removed since.
  std::vector<std::string> LastEnded(size_t most) const;

 private:
  std::string folder_;
};

}  // namespace overcap
