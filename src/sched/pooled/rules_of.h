// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "model/policy/policy.h"
#include "sched/pooled/pool_job.h"
#include "sched/pooled/rules.h"

namespace overcap::pooled {

// The policy as the scheduler reads it. `scale` makes the pool smaller or larger: nodes of every type and the
// caps of labs; what does not come out even of a type is one smaller node. A host with GPUs of two types is
// taken as two hosts, its CPUs and memory shared by the GPUs.
Rules RulesOf(const Policy& policy, double scale = 1);

// The types that an expression (model/gpu_type.h) means, as bits; 0: none, or no expression.
uint64_t TypesOf(const Rules& rules, std::string_view expression);

// The limits that a user has in a lab. `user`: any number, the same in every lab.
AccountRule AccountOf(const Policy& policy, int lab, std::string_view name, int user);

}  // namespace overcap::pooled
