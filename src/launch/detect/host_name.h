// SPDX-License-Identifier: Apache-2.0
// Names of hosts as users, files and schedulers write them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "launch/allocation.h"

namespace overcap {

// Whether two names mean one host: equal whatever the case, or one is short and the first label of the other.
// Addresses are compared whole.
bool SameHost(std::string_view a, std::string_view b);

// Whether a host called `this_host` is meant by `name` on it: by one of its names, or as localhost.
bool IsHostItself(std::string_view name, std::string_view this_host);

bool IsIpv6(std::string_view text);  // also with a zone, "fe80::1%eth0"; no brackets

// "" when `name` ("node1", "user@node1.example.org", an address) may be given to ssh or an mpiexec as one
// word, else why not. A name that a program could take for an option is refused.
std::string HostNameProblem(std::string_view name);

// Hosts in the order in which they first come, each once.
class HostTable {
 public:
  struct Added {
    AllocatedHost* host;  // good until the next call
    bool first;           // it was not there before
  };
  Added Add(std::string_view name);
  size_t Size() const { return hosts_.size(); }
  std::vector<AllocatedHost> Take() { return std::move(hosts_); }

 private:
  std::vector<AllocatedHost> hosts_;
  std::unordered_map<std::string, size_t> places_;
};

}  // namespace overcap
