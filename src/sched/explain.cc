// SPDX-License-Identifier: Apache-2.0
// Why a job waits, in words.
#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "sched/scheduler.h"

namespace overcap {
namespace {

constexpr int kCountTo = 99;  // beyond that the number says nothing, and counting would cost

std::string Lacking(int64_t asked, int64_t free, std::string_view noun) {
  if (asked - free >= asked) return StrCat("waits for ", asked, " ", noun, asked == 1 ? "" : "s");
  return StrCat("waits for ", asked - free, " of ", asked, " ", noun, asked == 1 ? "" : "s");
}

}  // namespace

// What is not free now, on the machine where the least is missing.
std::string Scheduler::Missing(const Shape& shape) const {
  const Resources& asked = shape.resources;
  size_t best = 0;
  for (size_t node = 1; node < pool_.machines().size(); ++node) {
    if (pool_.FreeGpus(shape, node) > pool_.FreeGpus(shape, best)) best = node;
  }
  if (pool_.FreeGpus(shape, best) < asked.gpus) {
    const std::string type = asked.gpu_type.empty() ? "" : StrCat(" of type '", ToUtf8(asked.gpu_type), "'");
    return Lacking(asked.gpus, pool_.FreeGpus(shape, best), "GPU") + type;
  }
  if (pool_.FreeCpus(best) < shape.cpu_places) {
    return Lacking(shape.cpu_places, std::max(0, pool_.FreeCpus(best)), "CPU");
  }
  if (pool_.FreeMem(best) < shape.mem_bytes)
    return StrCat("waits for ", FormatBytes(shape.mem_bytes), " of memory");
  return "";
}

int Scheduler::JobsAhead(const Job& job, uint64_t key, int stop_at, bool* higher) const {
  size_t ahead = 0;
  for (const auto& [name, line] : lines_) {
    if (line.priority < job.priority || ahead > static_cast<size_t>(stop_at)) break;  // lines are by priority
    if (line.priority > job.priority) {
      *higher = true;
      ahead += line.jobs.size();
      continue;
    }
    const std::pair own{job.seq, key};
    for (auto at = line.jobs.begin();
         at != line.jobs.end() && *at < own && ahead <= static_cast<size_t>(stop_at); ++at)
      ++ahead;
  }
  return static_cast<int>(std::min(ahead, static_cast<size_t>(stop_at) + 1));
}

std::string Scheduler::Explain(uint64_t key, int64_t now_us) const {
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || found->second.wanted == 0) return "";
  const Job& job = found->second;
  if (const auto fits = Fits(job.shape->shape.resources); !fits) return fits.error().message;
  bool higher = false;
  const int ahead = JobsAhead(job, key, kCountTo, &higher);
  std::string why = Missing(job.shape->shape);
  if (why.empty() && ahead > 0) why = "waits: what is free is kept for an earlier job";
  if (why.empty()) {
    return pool_.Place(job.shape->shape, now_us, nullptr) ? "about to start" : "waits for resources";
  }
  if (ahead > kCountTo) return StrCat(why, "; more than ", kCountTo, " jobs ahead");
  if (ahead > 0) why += StrCat("; ", ahead, ahead == 1 ? " job ahead" : " jobs ahead");
  return higher ? why + ", higher priority first" : why;
}

}  // namespace overcap
