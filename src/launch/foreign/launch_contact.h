// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

// Taken out of the environment before the user's command runs.
constexpr char kContactVariable[] = "OVERCAP_LAUNCH";
constexpr char kKeyVariable[] = "OVERCAP_LAUNCH_KEY";
// Stays in it: whatever a rank leaves behind is known by it.
constexpr char kIdVariable[] = "OVERCAP_LAUNCH_ID";

// How the ranks under a launcher find the process that started it: what OVERCAP_LAUNCH holds.
struct LaunchContact {
  std::string id;                      // of this attempt; letters, digits and '-'
  int port = 0;                        // where the head listens; 0: nowhere
  std::vector<std::string> addresses;  // of the head, the best first
  std::string head_host;               // its name, for when no address leads to it; may be empty
  std::string master_addr;             // for ranks that cannot reach the head
  int master_port = 0;
  int64_t grace_us = 10'000'000;  // between TERM and KILL when the head is gone
  bool operator==(const LaunchContact&) const = default;
};

// One line of printable ASCII.
std::string EncodeContact(const LaunchContact& contact);
Result<LaunchContact> ParseContact(std::string_view text);  // kCorrupt

// What OVERCAP_LAUNCH_ID holds on a host. Hosts may be parts of one machine: each has its own.
std::string LaunchTag(const LaunchContact& contact, std::string_view host);

}  // namespace overcap
