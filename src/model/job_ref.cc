// SPDX-License-Identifier: Apache-2.0
#include "model/job_ref.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

using Candidates = std::vector<JobRefCandidate>;
using CommandOf = std::function<std::string(std::string_view id)>;

constexpr size_t kMostListed = 10;

Result<std::string> Last(const Candidates& jobs) {
  if (jobs.empty()) {
    return Fail(ErrorCode::kNotFound, "there is no job yet, so 'last' names none",
                "overcap submit CMD... makes one");
  }
  return std::string(jobs.back().id);
}

std::string Shortened(std::string text) {
  constexpr size_t kMost = 60;
  if (text.size() <= kMost) return text;
  return text.substr(0, kMost) + "...";
}

tl::unexpected<Error> Ambiguous(std::string_view ref, const Candidates& matches,
                                const CommandOf& command_of) {
  std::string message = StrCat("'", ref, "' is the end of ", matches.size(), " job ids:");
  Candidates newest(matches.rbegin(), matches.rend());
  if (newest.size() > kMostListed) newest.resize(kMostListed);
  for (const JobRefCandidate& job : newest)
    message += StrCat("\n  ", job.id, "  ", Shortened(command_of(job.id)));
  if (matches.size() > kMostListed)
    message += StrCat("\n  and ", matches.size() - kMostListed, " older ones");
  return Fail(ErrorCode::kConflict, std::move(message), "give more of its last characters");
}

// The id whose end is most like `ref`; a slip of the fingers is compared with as many last characters.
std::string NearestId(std::string_view ref, const Candidates& jobs) {
  constexpr size_t kMostCompared = 1000;
  std::vector<std::string> ends;
  const size_t first = jobs.size() > kMostCompared ? jobs.size() - kMostCompared : 0;
  for (size_t i = first; i < jobs.size(); ++i) {
    const std::string_view id = jobs[i].id;
    ends.emplace_back(id.substr(id.size() - std::min(id.size(), ref.size())));
  }
  const std::string end = Nearest(ref, ends);
  if (end.empty()) return {};
  return std::string(
      jobs[first + static_cast<size_t>(std::find(ends.begin(), ends.end(), end) - ends.begin())].id);
}

// The last job that was given the name `ref`.
std::string_view IdOfName(std::string_view ref, const Candidates& jobs) {
  const auto found =
      std::find_if(jobs.rbegin(), jobs.rend(), [&](const JobRefCandidate& job) { return job.name == ref; });
  return found == jobs.rend() ? std::string_view() : found->id;
}

tl::unexpected<Error> Unknown(std::string_view ref, const Candidates& jobs, const CommandOf& command_of) {
  if (const std::string_view named = IdOfName(ref, jobs); !named.empty()) {
    return Fail(ErrorCode::kNotFound, StrCat("there is no job with the id '", ref, "'"),
                StrCat("a job is named '", ref, "': its id is ", named));
  }
  const std::string nearest = NearestId(ref, jobs);
  return Fail(ErrorCode::kNotFound, StrCat("there is no job '", ref, "'"),
              nearest.empty()
                  ? "`overcap ls --all` lists all jobs"
                  : StrCat("did you mean '", nearest, "' (", Shortened(command_of(nearest)), ")?"));
}

}  // namespace

Result<std::string> ResolveJobRef(std::string_view ref, const Candidates& jobs, const CommandOf& command_of) {
  if (ref.empty())
    return Fail(ErrorCode::kUsage, "a job id is empty", "give an id, its last characters, or `last`");
  if (ref == "last") return Last(jobs);
  Candidates matches;
  for (const JobRefCandidate& job : jobs) {
    if (job.id == ref) return std::string(ref);
    if (job.id.ends_with(ref)) matches.push_back(job);
  }
  if (matches.size() == 1) return std::string(matches.front().id);
  if (matches.empty()) return Unknown(ref, jobs, command_of);
  return Ambiguous(ref, matches, command_of);
}

}  // namespace overcap
