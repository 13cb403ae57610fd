// SPDX-License-Identifier: Apache-2.0
#include "sys/oom.h"

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {

int64_t KernelOomKills() {
  const std::string counters = PosixFiles().Read("/proc/vmstat").value_or("");
  constexpr std::string_view kName = "\noom_kill ";
  const size_t at = counters.find(kName);
  if (at == counters.npos) return -1;
  const size_t begin = at + kName.size();
  return ParseInt(std::string_view(counters).substr(begin, counters.find('\n', begin) - begin)).value_or(-1);
}

}  // namespace overcap
