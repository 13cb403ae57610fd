// SPDX-License-Identifier: Apache-2.0
// Text of ssh's configuration: Overcap's own entries and the line that includes them. Pure; whatever else
// stands in a text is kept byte for byte.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

// What `Host overcap-NAME` says.
struct SshHost {
  std::string name;  // of the allocation
  std::string job;   // whose entry it is, together with the attempt
  int attempt = 0;
  std::string node, user;
  std::vector<std::string> proxy;  // the command that connects; empty: `jump` is gone through
  std::string jump;                // host from which the node can be reached
  std::string key, known_hosts;    // with `proxy`: of the sshd that it leads to
};

// The host's name for ssh: "overcap-NAME".
std::string SshHostName(std::string_view allocation);

// The entry, between two marks. kUsage when a path cannot be written in such a file.
Result<std::string> SshHostEntry(const SshHost& host);

// Which entries a text has.
struct SshEntry {
  std::string name, job;
  int attempt = 0;
  std::string node;
  bool operator==(const SshEntry&) const = default;
};
std::vector<SshEntry> SshEntries(std::string_view text);

// The text with this entry in the place of the one of the same allocation, or at its end.
std::string WithSshEntry(std::string_view text, std::string_view name, std::string_view entry);
std::string WithoutSshEntry(std::string_view text, std::string_view name);

// Whether an Include of `path` holds for all hosts (it stands before the first Host or Match). `path` as it
// is written: "~/.ssh/overcap/config".
bool HasSshInclude(std::string_view text, std::string_view path);
// The same text with the Include at its top, in its own kind of line ends; unchanged when it has it.
std::string WithSshInclude(std::string_view text, std::string_view path);

}  // namespace overcap
