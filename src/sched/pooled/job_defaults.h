// SPDX-License-Identifier: Apache-2.0
// What a job gets that does not say what it wants: CPUs and memory for its GPUs. Pure.
#pragma once

#include "sched/pooled/pool_job.h"
#include "sched/pooled/rules.h"

namespace overcap::pooled {

// The partition of the highest priority among these, of equal ones the first; -1: none.
int FirstPartition(const Rules& rules, uint64_t partitions);

// Fills in the CPUs (where `need.cpus` is 0) and the memory (where `need.mem_mb` is 0) that the partition of
// the highest priority among these gives to each GPU. Jobs without GPUs stay as they are.
Need WithDefaults(const Rules& rules, uint64_t partitions, Need need);

}  // namespace overcap::pooled
