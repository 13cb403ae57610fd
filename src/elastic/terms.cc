// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <signal.h>
#include <string.h>

#include "base/text.h"
#include "elastic/leader_state.h"
#include "net/handshake.h"

namespace overcap::elastic {

std::string FailureLine(const ElasticFailure& failure, const std::string& host) {
  std::string text = StrCat("rank ", failure.rank, " on '", host, "' ");
  if (failure.kind == "hung") {
    text += "hung";
  } else if (failure.kind == "cannot_start") {
    text += "could not be started";
  } else if (failure.out_of_memory) {
    text += "failed first: killed because memory ran out";
  } else if (failure.signal != 0) {
    const char* name = sigabbrev_np(failure.signal);
    text += StrCat("failed first: killed by signal ", failure.signal,
                   name != nullptr ? StrCat(" (SIG", name, ")") : "");
  } else {
    text += StrCat("failed first: exit status ", failure.exit_status);
  }
  if (!failure.message.empty()) text += StrCat(": ", failure.message);
  return text;
}

std::string TermsDifference(const std::vector<std::pair<std::string, std::string>>& theirs,
                            const std::vector<std::pair<std::string, std::string>>& ours) {
  const auto value_of = [](const auto& terms, const std::string& name) -> const std::string* {
    const auto at = std::find_if(terms.begin(), terms.end(), [&](const auto& t) { return t.first == name; });
    return at == terms.end() ? nullptr : &at->second;
  };
  for (const auto& [name, value] : ours) {
    const std::string* other = value_of(theirs, name);
    if (other == nullptr) return StrCat("it does not tell its ", name);
    if (*other != value)
      return StrCat("its ", name, " is ", Quoted(*other, 200), ", the leader's is ", Quoted(value, 200));
  }
  for (const auto& [name, value] : theirs) {
    if (value_of(ours, name) == nullptr) return StrCat("it has a ", ToUtf8(name), ", the leader has none");
  }
  return "";
}

std::string TermsHash(const std::vector<std::pair<std::string, std::string>>& terms) {
  std::string all;
  for (const auto& [name, value] : terms) all += StrCat(name, "\0", value.size(), ":", value, "\n");
  const auto digest = HmacSha256("overcap elastic terms", all);
  return LinkKey{std::string(reinterpret_cast<const char*>(digest.data()), 16)}.Hex();
}

}  // namespace overcap::elastic
