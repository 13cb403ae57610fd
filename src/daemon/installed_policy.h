// SPDX-License-Identifier: Apache-2.0
// The policy file of an engine: <root>/policy.yaml is the one in force; a file that the engine was started
// with
// (--policy) is where it comes from.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "model/policy/policy.h"
#include "sys/files.h"

namespace overcap {

class InstalledPolicy {
 public:
  // `source`: what --policy names, an absolute path; "": nothing.
  InstalledPolicy(Files& files, std::string root, std::string source);

  // What holds at a start; nothing: there is no policy. The source when it is good, and then it is installed;
  // else the one that was in force, and problem() says why. An error: there is no good one at all.
  Result<std::optional<Policy>> Load();
  // Puts a policy that was found good in the place of the others, durably: in the source too.
  Result<void> Install(const std::string& text);

  const std::string& text() const { return text_; }        // of the one in force; "": there is none
  const std::string& problem() const { return problem_; }  // of the source; "": none
  std::string path() const { return source_.empty() ? installed_ : source_; }

 private:
  Result<std::optional<Policy>> LoadInstalled();

  Files& files_;
  std::string installed_, source_;
  std::string text_, problem_;
};

}  // namespace overcap
