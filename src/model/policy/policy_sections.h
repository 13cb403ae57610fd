// SPDX-License-Identifier: Apache-2.0
// The parts of a policy file, each read into its part of the policy. In this order: a part may look at those
// before it.
#pragma once

#include "model/policy/policy.h"
#include "model/policy/policy_value.h"

namespace overcap {

using GpuTypeCpus = std::map<std::string, int>;  // CPUs per GPU, by type

void ReadCpusPerGpu(const PolicyValue& value, GpuTypeCpus* out);
void ReadPolicyNodes(const PolicyValue& value, const GpuTypeCpus& cpus_per_gpu, Policy* policy);
void ReadPolicyLabs(const PolicyValue& value, Policy* policy);
void ReadPolicyUsers(const PolicyValue& value, Policy* policy);
// Nothing: the five alone.
void ReadPolicyPartitions(PolicyNotes* notes, const PolicyValue* value, Policy* policy);
void ReadPolicyMaintenance(const PolicyValue& value, Policy* policy);
void ReadPolicyWeights(const PolicyValue& value, Policy* policy);

}  // namespace overcap
