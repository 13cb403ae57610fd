// SPDX-License-Identifier: Apache-2.0
// The host file that a user gives with --hostfile, in any of the forms that MPI users know:
//
//   node1                     # a comment
//   node2 slots=4             # Open MPI; cpu= and count= mean the same
//   node3:4                   # MPICH, Intel MPI
//   node4 slots=2 max_slots=8 # max_slots alone counts as slots
//   node[5-8],x9 slots=4      # a Slurm host list: each has 4
//   alice@node10              # or user=alice; kept as alice@node10
//   [2001:db8::1]:4           # an IPv6 address, brackets only needed before :4; the name has none
//   node11 gpus=2             # Overcap's own: GPUs to be used there
//
// A host on several lines has the sum of their slots, 1 for a line that tells none (a PBS node file).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/allocation.h"

namespace overcap {

// Hosts in the order in which they first come. kUsage, "hostfile.txt:3: ...", also for a file without hosts.
Result<std::vector<AllocatedHost>> ParseHostFile(std::string_view text, std::string_view file_name);

// kUsage, naming the file, when it cannot be read. A pipe may be given; one that gives nothing for 10 seconds
// is an error.
Result<std::vector<AllocatedHost>> ReadHostFile(const std::string& path);

}  // namespace overcap
