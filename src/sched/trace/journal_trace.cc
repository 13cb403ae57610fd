// SPDX-License-Identifier: Apache-2.0
// The journal of the embedded engine (docs/formats/journal.md): jobs that have ended. The first start counts
// as the start; arrays are one job for each task that could run at once, so they are left out.
#include "base/text.h"
#include "model/event.h"
#include "sched/trace/trace_fields.h"

namespace overcap {
namespace {

struct Known {
  Resources resources;
  std::string user;
  int64_t submitted_us = 0, started_us = 0;
  uint32_t line = 0;
  bool array = false;
};

void AddEnded(const Known& job, int64_t ended_us, Trace* trace) {
  if (job.array) return trace->skips.Add("an array", job.line);
  if (job.started_us == 0) return trace->skips.Add("never ran", job.line);
  TraceRow row;
  row.submit_s = static_cast<double>(job.submitted_us) / 1e6;
  row.run_s = static_cast<double>(ended_us - job.started_us) / 1e6;
  row.limit_s = static_cast<double>(job.resources.time_seconds);
  row.gpus = job.resources.gpus, row.nodes = job.resources.nodes;
  const double cpus = static_cast<double>(job.resources.cpus) * job.resources.nodes;
  row.cpus = job.resources.gpus == 0 ? std::max(cpus, 1.0) : cpus;
  row.lab = job.user, row.user = job.user, row.type = job.resources.gpu_type;
  AddTraceRow(row, job.line, trace);
}

}  // namespace

Result<Trace> ReadJournalTrace(std::string_view text) {
  Trace trace;
  TraceLines lines(text);
  std::string_view line;
  std::unordered_map<std::string, Known> jobs;
  while (lines.Next(&line)) {
    const size_t brace = line.find('{');
    if (brace == std::string_view::npos) continue;
    const auto event = EventFromJson(line.substr(brace));
    if (!event) {
      trace.skips.Add("no record of a journal", lines.number());
      continue;
    }
    if (event->kind == EventKind::kSubmitted) {
      jobs[event->id] = {event->spec.resources, event->spec.user,          event->time_us, 0,
                         lines.number(),        !event->spec.array.empty()};
      continue;
    }
    const auto found = jobs.find(event->id);
    if (found == jobs.end()) continue;
    if (event->kind == EventKind::kStarted && found->second.started_us == 0)
      found->second.started_us = event->time_us;
    int64_t ended_us = event->kind == EventKind::kEnded ? event->time_us : 0;
    if (event->kind == EventKind::kState) {
      found->second.started_us = event->progress.started_us;
      ended_us = event->progress.ended_us;
    }
    if (ended_us == 0) continue;
    AddEnded(found->second, ended_us, &trace);
    jobs.erase(found);
  }
  for (const auto& [id, job] : jobs) trace.skips.Add("has not ended", job.line);
  return trace;
}

}  // namespace overcap
