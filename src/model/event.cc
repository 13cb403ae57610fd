// SPDX-License-Identifier: Apache-2.0
#include "model/event.h"

#include <array>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/machine_json.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

// The one list of kinds and which parts of an Event each carries.
struct KindRow {
  EventKind kind;
  std::string_view name;
  bool slot = false;        // attempt, slot
  bool allocation = false;  // gpus, cpus
  bool ending = false;
  bool reason = false;
  bool tasks = false;
  bool progress = false;
};

constexpr std::array<KindRow, 13> kKinds = {{
    {EventKind::kJournal, "journal"},
    {EventKind::kSubmitted, "submitted"},
    {EventKind::kHeld, "held"},
    {EventKind::kReleased, "released"},
    {EventKind::kStarted, "started", true, true},
    {EventKind::kCancel, "cancel", false, false, false, true},
    {EventKind::kSlotEnded, "slot_ended", true, false, true, false, true},
    {EventKind::kRequeued, "requeued", false, false, false, true},
    {EventKind::kEnded, "ended", false, false, true},
    {EventKind::kRemoved, "removed"},
    {EventKind::kMachine, "machine"},
    {EventKind::kPreempt, "preempt", true},
    {EventKind::kState, "state", false, false, true, true, true, true},
}};

const KindRow& RowOf(EventKind kind) {
  return kKinds[static_cast<size_t>(kind)];
}

const KindRow* FindKind(std::string_view name) {
  for (const KindRow& row : kKinds) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

void WriteInts(JsonWriter* out, std::string_view key, const std::vector<int>& values) {
  out->Key(key).BeginArray();
  for (const int value : values) out->Int(value);
  out->EndArray();
}

void WriteEnding(JsonWriter* out, const Ending& ending) {
  out->Field("state", JobStateName(ending.state)).Field("exit_status", ending.exit_status);
  if (ending.signal != 0) out->Field("signal", ending.signal);
  if (ending.first_failed_rank >= 0) out->Field("first_failed_rank", ending.first_failed_rank);
  if (!ending.reason.empty()) out->Field("reason", ending.reason);
}

void WriteTasks(JsonWriter* out, const TaskResults& tasks) {
  if (tasks == TaskResults{}) return;
  out->Key("tasks").BeginObject().Field("succeeded", tasks.succeeded);
  out->Key("failed").BeginArray();
  for (const auto& [index, status] : tasks.failed) out->BeginArray().Int(index).Int(status).EndArray();
  out->EndArray();
  WriteInts(out, "lost", tasks.lost);
  out->EndObject();
}

void WriteProgress(JsonWriter* out, const JobProgress& progress) {
  out->Field("attempt", progress.attempt)
      .Field("restarts", progress.restarts)
      .Field("losses", progress.losses);
  out->Field("next_slot", progress.next_slot).Field("cancel", progress.cancel_requested);
  if (progress.preemptions > 0) out->Field("preemptions", progress.preemptions);
  if (!progress.preempted_by.empty()) out->Field("preempted_by", progress.preempted_by);
  if (!progress.partition.empty()) out->Field("partition", progress.partition);
  out->Field("started_us", progress.started_us).Field("ended_us", progress.ended_us);
}

void ReadEnding(const Json& json, Ending* ending) {
  ending->state =
      JobStateFromName(json.at("state").get_ref<const std::string&>()).value_or(JobState::kUnknown);
  ending->exit_status = json.value("exit_status", -1);
  ending->signal = json.value("signal", 0);
  ending->first_failed_rank = json.value("first_failed_rank", -1);
}

void ReadTasks(const Json& json, TaskResults* tasks) {
  const auto found = json.find("tasks");
  if (found == json.end()) return;
  tasks->succeeded = found->value("succeeded", 0);
  for (const Json& pair : found->at("failed"))
    tasks->failed.emplace_back(pair.at(0).get<int>(), pair.at(1).get<int>());
  tasks->lost = found->value("lost", std::vector<int>());
}

void ReadProgress(const Json& json, JobProgress* progress) {
  progress->attempt = json.value("attempt", 0);
  progress->restarts = json.value("restarts", 0);
  progress->losses = json.value("losses", 0);
  progress->next_slot = json.value("next_slot", 0);
  progress->cancel_requested = json.value("cancel", false);
  progress->preemptions = json.value("preemptions", 0);
  progress->preempted_by = json.value("preempted_by", "");
  progress->partition = json.value("partition", "");
  progress->started_us = json.value("started_us", int64_t{0});
  progress->ended_us = json.value("ended_us", int64_t{0});
}

Event ReadEvent(const Json& json, const KindRow& row) {
  Event event;
  event.kind = row.kind;
  event.time_us = json.value("t", int64_t{0});
  event.id = json.value("id", "");
  event.version = json.value("version", 1);
  if (row.slot) event.attempt = json.at("attempt").get<int>();
  if (row.slot) event.slot = json.at("slot").get<int>();
  if (row.allocation) event.gpus = json.at("gpus").get<std::vector<int>>();
  if (row.allocation) event.cpus = json.at("cpus").get<std::vector<int>>();
  if (row.allocation) event.nodes = json.value("nodes", 1);
  if (row.allocation) event.boot_id = json.value("boot", "");
  if (row.allocation) event.host = json.value("host", "");
  if (row.allocation || row.progress) event.retry_tasks = json.value("retry", std::vector<int>());
  if (row.allocation) event.partition = json.value("partition", "");
  if (row.kind == EventKind::kPreempt) {
    event.by = json.value("by", "");
    event.stop_us = json.at("stop_us").get<int64_t>();
  }
  if (row.ending) ReadEnding(json, &event.ending);
  std::string reason = json.value("reason", "");
  if (row.ending) event.ending.reason = reason;
  if (row.reason) event.reason = std::move(reason);
  if (row.tasks) ReadTasks(json, &event.tasks);
  if (row.progress) ReadProgress(json, &event.progress);
  if (row.progress) event.gpus = json.value("gpus", std::vector<int>());
  return event;
}

}  // namespace

std::string_view EventKindName(EventKind kind) {
  return RowOf(kind).name;
}

std::string EventToJson(const Event& event, bool with_id) {
  const KindRow& row = RowOf(event.kind);
  JsonWriter out;
  out.BeginObject().Field("e", row.name).Field("t", event.time_us);
  if (with_id && !event.id.empty()) out.Field("id", event.id);
  if (event.kind == EventKind::kJournal) out.Field("version", event.version);
  if (row.slot) out.Field("attempt", event.attempt).Field("slot", event.slot);
  if (row.allocation) WriteInts(&out, "gpus", event.gpus), WriteInts(&out, "cpus", event.cpus);
  if (row.allocation && event.nodes != 1) out.Field("nodes", event.nodes);
  if (!event.boot_id.empty()) out.Field("boot", event.boot_id);
  if (!event.host.empty()) out.Field("host", event.host);
  if (!event.retry_tasks.empty()) WriteInts(&out, "retry", event.retry_tasks);
  if (row.allocation && !event.partition.empty()) out.Field("partition", event.partition);
  if (row.kind == EventKind::kPreempt) out.Field("by", event.by).Field("stop_us", event.stop_us);
  if (row.ending) WriteEnding(&out, event.ending);
  if (row.reason && !row.ending && !event.reason.empty()) out.Field("reason", event.reason);
  if (row.tasks) WriteTasks(&out, event.tasks);
  if (row.progress) WriteProgress(&out, event.progress);
  if (row.progress && !event.gpus.empty()) WriteInts(&out, "gpus", event.gpus);
  if (event.kind == EventKind::kMachine) out.Key("machine").Raw(MachineToJson(event.machine));
  if (event.kind == EventKind::kSubmitted) out.Key("spec").Raw(SpecToJson(event.spec));
  out.EndObject();
  return out.Take();
}

Result<Event> EventFromJson(std::string_view text) {
  // The spec is the last field of its record (journal.md), so it can be handed to its own reader as it is.
  constexpr std::string_view kSpecField = ",\"spec\":";
  const size_t spec_at = text.find(kSpecField);
  const bool has_spec = spec_at != std::string_view::npos && text.ends_with('}');
  try {
    const Json json = has_spec ? Json::parse(std::string(text.substr(0, spec_at)) + "}") : Json::parse(text);
    const std::string& name = json.at("e").get_ref<const std::string&>();
    const KindRow* row = FindKind(name);
    if (row == nullptr) {
      return Fail(ErrorCode::kCorrupt, StrCat("unknown event '", name, "'"),
                  "this was written by a newer overcap: use that one");
    }
    Event event = ReadEvent(json, *row);
    if (row->kind == EventKind::kMachine) {
      OC_TRY(machine, MachineFromJson(json.at("machine").dump()));
      event.machine = std::move(machine);
    }
    if (row->kind == EventKind::kSubmitted) {
      if (!has_spec) return Fail(ErrorCode::kCorrupt, "not an event: 'submitted' without its spec");
      const size_t begin = spec_at + kSpecField.size();
      OC_TRY(spec, SpecFromJson(text.substr(begin, text.size() - begin - 1)));
      event.spec = std::move(spec);
    }
    return event;
  } catch (const std::exception& error) {
    return Fail(ErrorCode::kCorrupt, StrCat("not an event: ", error.what()));
  }
}

}  // namespace overcap
