// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/pbs_hosts.h"

#include <algorithm>

#include "base/text.h"
#include "model/host_list.h"

namespace overcap {
namespace {

tl::unexpected<Error> Corrupt(std::string message) {
  return Fail(ErrorCode::kCorrupt, std::move(message));
}

std::string_view TakeField(char separator, std::string_view* rest) {
  const size_t end = std::min(rest->find(separator), rest->size());
  const std::string_view field = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return field;
}

}  // namespace

Result<std::vector<AllocatedHost>> ParseNodeFile(std::string_view text, std::string_view file_name) {
  HostTable table;
  size_t lines = 0;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view name = Trim(TakeField('\n', &text));
    if (name.empty()) continue;
    const std::string problem = HostNameProblem(name);
    if (!problem.empty())
      return Corrupt(StrCat(file_name, ":", number, ": host ", Quoted(name), ": ", problem));
    if (++lines > kMaxHosts) return Corrupt(StrCat(file_name, ": more than ", kMaxHosts, " lines"));
    ++table.Add(name).host->slots;
  }
  if (table.Size() == 0) return Corrupt(StrCat("node file '", file_name, "' names no host"));
  return table.Take();
}

}  // namespace overcap
