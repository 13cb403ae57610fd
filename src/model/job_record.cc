// SPDX-License-Identifier: Apache-2.0
#include "model/job_record.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "model/json_fields.h"
#include "model/spec_from_json.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

void TextOrNull(JsonWriter* out, std::string_view key, std::string_view value) {
  out->Key(key);
  if (value.empty()) {
    out->Null();
  } else {
    WriteBytes(out, value);
  }
}

template <typename N>
void NumberUnless(JsonWriter* out, std::string_view key, N value, N none) {
  out->Key(key);
  if (value == none) {
    out->Null();
  } else {
    out->Int(value);
  }
}

void TimeOrNull(JsonWriter* out, std::string_view key, int64_t unix_us) {
  TextOrNull(out, key, unix_us == 0 ? std::string() : FormatTimeUtc(unix_us));
}

void WriteStrings(JsonWriter* out, std::string_view key, const std::vector<std::string>& values) {
  out->Key(key).BeginArray();
  for (const std::string& value : values) WriteBytes(out, value);
  out->EndArray();
}

void WriteOutcome(JsonWriter* out, const JobRecord& record) {
  out->Field("state", JobStateName(record.state));
  if (!record.raw_state.empty()) WriteBytes(out, "raw_state", record.raw_state);
  if (!record.cluster_job.empty()) WriteBytes(out, "cluster_job", record.cluster_job);
  if (!record.node_list.empty()) WriteBytes(out, "node_list", record.node_list);
  TextOrNull(out, "reason", record.reason);
  if (!record.stale.empty()) WriteBytes(out, "stale", record.stale);
  out->Field("attempt", record.attempt);
  NumberUnless(out, "exit_status", record.exit_status, -1);
  NumberUnless(out, "signal", record.signal, 0);
  NumberUnless(out, "first_failed_rank", record.first_failed_rank, -1);
}

void WriteResources(JsonWriter* out, const Resources& resources) {
  out->Field("gpus", resources.gpus);
  out->Field("nodes", resources.nodes);
  NumberUnless(out, "max_nodes", resources.max_nodes, 0);
  out->Field("ranks_per_node", resources.ranks_per_node);
  NumberUnless(out, "cpus", resources.cpus, 0);
  NumberUnless(out, "mem_bytes", resources.mem_bytes, int64_t{0});
  NumberUnless(out, "time_seconds", resources.time_seconds, int64_t{0});
  TextOrNull(out, "gpu_type", resources.gpu_type);
}

void WriteTasks(JsonWriter* out, const JobRecord& record) {
  TextOrNull(out, "array", FormatArraySpec(record.spec.array));
  out->Key("tasks");
  if (record.spec.array.empty()) {
    out->Null();
    return;
  }
  const TaskCounts& tasks = record.tasks;
  out->BeginObject()
      .Field("total", tasks.total)
      .Field("queued", tasks.queued)
      .Field("running", tasks.running);
  out->Field("succeeded", tasks.succeeded)
      .Field("failed", tasks.failed)
      .Field("lost", tasks.lost)
      .Field("not_run", tasks.not_run)
      .EndObject();
}

void WriteFailedTasks(JsonWriter* out, const JobRecord& record) {
  NumberUnless(out, "first_failed_task", record.first_failed_task, -1);
  out->Key("failed_tasks");
  if (!record.failed_tasks) {
    out->Null();
    return;
  }
  out->BeginArray();
  for (const TaskResult& task : *record.failed_tasks) out->Raw(TaskToJson(task, {}));
  out->EndArray();
}

void WriteTimes(JsonWriter* out, const JobRecord& record, int64_t now_us) {
  TimeOrNull(out, "submitted", record.spec.submitted_us);
  TimeOrNull(out, "started", record.started_us);
  TimeOrNull(out, "ended", record.ended_us);
  const bool runs = record.state == JobState::kRunning;
  const int64_t until = record.ended_us != 0 ? record.ended_us : now_us;
  out->Key("elapsed_s");
  if (record.started_us == 0 || (record.ended_us == 0 && !runs)) {
    out->Null();
  } else {
    const int64_t elapsed_ms = std::max<int64_t>(0, until - record.started_us) / 1000;
    out->Double(static_cast<double>(elapsed_ms) / 1000);
  }
}

void WriteLogs(JsonWriter* out, const std::vector<LogFile>& logs) {
  out->Key("logs").BeginArray();
  for (const LogFile& log : logs) {
    out->BeginObject().Field("attempt", log.attempt).Field("rank", log.rank);
    if (log.task >= 0) out->Field("task", log.task);
    WriteBytes(out, "path", log.path);
    out->EndObject();
  }
  out->EndArray();
}

void WriteLinks(JsonWriter* out, const JobRecord& record) {
  out->Key("after").BeginArray();
  for (const Dependency& dependency : record.spec.after) WriteBytes(out, dependency.job_id);
  out->EndArray();
  TextOrNull(out, "resubmit_of", record.spec.resubmit_of);
  if (!record.spec.store.empty()) WriteJobStore(&out->Key("store"), record.spec.store);
}

void ReadTime(FieldReader* reader, std::string_view key, int64_t* unix_us) {
  std::string text;
  reader->Read(key, &text);
  if (text.empty()) return;
  const auto parsed = ParseTimeUtc(text);
  if (!parsed) return reader->Bad(key, "time");
  *unix_us = *parsed;
}

void ReadState(FieldReader* reader, JobRecord* record) {
  std::string name;
  reader->Read("state", &name);
  const auto state = JobStateFromName(name);
  record->state = state.value_or(JobState::kUnknown);
  if (!state) record->raw_state = name;  // written by a newer Overcap
  reader->Read("raw_state", &record->raw_state);
}

void ReadOutcome(FieldReader* reader, JobRecord* record) {
  ReadState(reader, record);
  reader->Read("cluster_job", &record->cluster_job);
  reader->Read("node_list", &record->node_list);
  reader->Read("reason", &record->reason);
  reader->Read("stale", &record->stale);
  reader->Read("attempt", &record->attempt);
  reader->Read("restarts", &record->restarts);
  reader->Read("exit_status", &record->exit_status);
  reader->Read("signal", &record->signal);
  reader->Read("first_failed_rank", &record->first_failed_rank);
  ReadTime(reader, "started", &record->started_us);
  ReadTime(reader, "ended", &record->ended_us);
  reader->Read("gpu_indices", &record->gpu_indices);
  reader->Read("partition", &record->partition);
  reader->Read("partitions", &record->spec.placement.partitions);
  reader->Read("preemptions", &record->preemptions);
  reader->Read("preempted_by", &record->preempted_by);
  reader->Read("dir", &record->dir);
}

void ReadSpec(FieldReader* reader, JobSpec* spec) {
  reader->Read("id", &spec->id);
  reader->Read("cluster", &spec->cluster);
  reader->Read("user", &spec->user);
  reader->Read("lab", &spec->lab);
  reader->Read("name", &spec->name);
  reader->Read("command", &spec->command);
  reader->Read("snapshot", &spec->snapshot);
  reader->Read("source", &spec->source);
  reader->Read("workdir", &spec->workdir);
  reader->Read("resubmit_of", &spec->resubmit_of);
  reader->Read("priority", &spec->priority);
  ReadTime(reader, "submitted", &spec->submitted_us);
  if (const Json* store = reader->Object("store")) {
    auto read = ReadJobStore(*store);
    if (read) spec->store = *std::move(read);
  }
  std::vector<std::string> after;
  reader->Read("after", &after);
  for (std::string& id : after) spec->after.push_back({std::move(id), false});
}

void ReadResources(FieldReader* reader, Resources* resources) {
  reader->Read("gpus", &resources->gpus);
  reader->Read("nodes", &resources->nodes);
  reader->Read("max_nodes", &resources->max_nodes);
  reader->Read("ranks_per_node", &resources->ranks_per_node);
  reader->Read("cpus", &resources->cpus);
  reader->Read("mem_bytes", &resources->mem_bytes);
  reader->Read("time_seconds", &resources->time_seconds);
  reader->Read("gpu_type", &resources->gpu_type);
}

void ReadTasks(FieldReader* reader, JobRecord* record) {
  std::string array;
  reader->Read("array", &array);
  if (!array.empty()) {
    auto parsed = ParseArraySpec(array);
    if (!parsed) return reader->Bad("array", "array");
    record->spec.array = std::move(*parsed);
  }
  const Json* tasks = reader->Object("tasks");
  if (tasks == nullptr) return;
  FieldReader counts(*tasks, "tasks of the job record");
  counts.Read("total", &record->tasks.total);
  counts.Read("queued", &record->tasks.queued);
  counts.Read("running", &record->tasks.running);
  counts.Read("succeeded", &record->tasks.succeeded);
  counts.Read("failed", &record->tasks.failed);
  counts.Read("lost", &record->tasks.lost);
  counts.Read("not_run", &record->tasks.not_run);
  reader->Take(counts.Check());
}

void ReadFailedTasks(FieldReader* reader, JobRecord* record) {
  reader->Read("first_failed_task", &record->first_failed_task);
  const Json* items = reader->Array("failed_tasks");
  if (items == nullptr) return;
  record->failed_tasks.emplace();
  for (const Json& item : *items) {
    if (!item.is_object()) return reader->Bad("failed_tasks", "array of objects");
    FieldReader fields(item, "failed_tasks of the job record");
    TaskResult task;
    std::string state;
    fields.Read("task", &task.task);
    fields.Read("try", &task.attempt);
    fields.Read("state", &state);
    fields.Read("exit_status", &task.ending.exit_status);
    fields.Read("signal", &task.ending.signal);
    fields.Read("first_failed_rank", &task.ending.first_failed_rank);
    fields.Read("reason", &task.ending.reason);
    reader->Take(fields.Check());
    task.ending.state = JobStateFromName(state).value_or(JobState::kUnknown);
    record->failed_tasks->push_back(std::move(task));
  }
}

void ReadLogs(FieldReader* reader, std::vector<LogFile>* logs) {
  const Json* items = reader->Array("logs");
  if (items == nullptr) return;
  for (const Json& item : *items) {
    if (!item.is_object()) return reader->Bad("logs", "array of objects");
    FieldReader fields(item, "logs of the job record");
    LogFile log;
    fields.Read("attempt", &log.attempt);
    fields.Read("rank", &log.rank);
    fields.Read("task", &log.task);
    fields.Read("path", &log.path);
    reader->Take(fields.Check());
    logs->push_back(std::move(log));
  }
}

}  // namespace

std::string PartitionText(JobState state, const std::string& last, const std::vector<std::string>& asked) {
  const bool waits = state == JobState::kHeld || state == JobState::kQueued;
  return last.empty() || (waits && !asked.empty()) ? Join(asked, ",") : last;
}

std::string TaskToJson(const TaskResult& task, std::string_view log) {
  const Ending& ending = task.ending;
  JsonWriter out;
  out.BeginObject().Field("task", task.task);
  out.Field("state", ending.state == JobState::kUnknown ? "not_run" : JobStateName(ending.state));
  out.Field("try", task.attempt);
  NumberUnless(&out, "exit_status", ending.exit_status, -1);
  NumberUnless(&out, "signal", ending.signal, 0);
  NumberUnless(&out, "first_failed_rank", ending.first_failed_rank, -1);
  TextOrNull(&out, "reason", ending.reason);
  if (!log.empty()) WriteBytes(&out, "log", log);
  return out.EndObject().Take();
}

std::string RecordToJson(const JobRecord& record, int64_t now_us) {
  const JobSpec& spec = record.spec;
  JsonWriter out;
  out.BeginObject();
  WriteBytes(&out, "id", spec.id);
  TextOrNull(&out, "cluster", spec.cluster);
  TextOrNull(&out, "user", spec.user);
  TextOrNull(&out, "lab", spec.lab);
  TextOrNull(&out, "name", spec.name);
  WriteOutcome(&out, record);
  WriteStrings(&out, "command", spec.command);
  WriteResources(&out, spec.resources);
  WriteTasks(&out, record);
  WriteFailedTasks(&out, record);
  TextOrNull(&out, "snapshot", spec.snapshot);
  TextOrNull(&out, "source", spec.source);
  TextOrNull(&out, "workdir", spec.workdir);
  WriteTimes(&out, record, now_us);
  TextOrNull(&out, "dir", record.dir);
  WriteLogs(&out, record.logs);
  WriteLinks(&out, record);
  out.Field("priority", spec.priority).Field("restarts", record.restarts);
  TextOrNull(&out, "partition", record.partition);
  WriteStrings(&out, "partitions", spec.placement.partitions);
  out.Field("preemptions", record.preemptions);
  TextOrNull(&out, "preempted_by", record.preempted_by);
  out.Key("gpu_indices").BeginArray();
  for (const int index : record.gpu_indices) out.Int(index);
  return out.EndArray().EndObject().Take();
}

Result<JobRecord> RecordFromJson(std::string_view json) {
  OC_TRY(object, ParseJsonObject(json, "job record"));
  FieldReader reader(object, "job record");
  JobRecord record;
  ReadOutcome(&reader, &record);
  ReadSpec(&reader, &record.spec);
  ReadResources(&reader, &record.spec.resources);
  ReadTasks(&reader, &record);
  ReadFailedTasks(&reader, &record);
  ReadLogs(&reader, &record.logs);
  OC_TRY_VOID(reader.Check());
  return record;
}

}  // namespace overcap
