// SPDX-License-Identifier: Apache-2.0
#include "elastic/slurm_place.h"

#include <cstdint>

#include "base/text.h"
#include "model/host_list.h"

namespace overcap::elastic {
namespace {

// Below those that kernels give away.
constexpr uint32_t kFirstPort = 15'000, kPorts = 16'000, kStride = 1'987;

uint32_t HashOf(std::string_view text) {
  uint32_t hash = 2'166'136'261U;  // FNV-1a
  for (const unsigned char c : text) hash = (hash ^ c) * 16'777'619U;
  return hash;
}

std::string HeadOf(const Variables& variables) {
  if (const std::string_view told = variables.Get("OVERCAP_RDZV_HEAD"); !told.empty())
    return std::string(told);
  const bool step = !variables.Get("SLURM_STEP_ID").empty();
  const auto nodes = ExpandHostList(variables.Get(step ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST"));
  return nodes && nodes->size() > 1 ? nodes->front() : "";
}

std::string IdOf(const Variables& variables) {
  const std::string_view step = variables.Get("SLURM_STEP_ID"), again = variables.Get("SLURM_RESTART_COUNT");
  if (step.empty()) return "";
  return StrCat("slurm-", variables.Get("SLURM_JOB_ID"), ".", step, again.empty() ? "" : StrCat("-", again));
}

}  // namespace

RendezvousPlace PlaceUnderSlurm(RendezvousPlace place, const Variables& variables) {
  const std::string_view self = variables.Get("SLURMD_NODENAME");
  if (place.kind != RendezvousPlace::Kind::kAuto || self.empty()) return place;
  const std::string head = HeadOf(variables);
  const std::string id = place.id.empty() ? IdOf(variables) : place.id;
  if (head.empty() || !IsRendezvousId(id)) return place;
  place.kind = RendezvousPlace::Kind::kTcp;
  place.id = id;
  place.here = head == self;
  const uint32_t hash = HashOf(id) % kPorts;
  for (uint32_t i = 0; i < kSlurmPorts; ++i) {
    place.endpoints.emplace_back(head, static_cast<int>(kFirstPort + (hash + i * kStride) % kPorts));
  }
  return place;
}

}  // namespace overcap::elastic
