// SPDX-License-Identifier: Apache-2.0
#include "control/why.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "control/job_exit_status.h"
#include "control/why_waits.h"

namespace overcap {
namespace {

void ExplainEnd(const JobRecord& record, WhyAnswer* answer) {
  const std::string ending = EndingText(record);
  answer->text = StrCat("it has ended: ", JobStateName(record.state));
  if (!ending.empty() && record.state != JobState::kSucceeded) answer->text += ", " + ending;
  if (!record.reason.empty()) answer->facts.push_back(record.reason);
  if (record.started_us > 0 && record.ended_us > 0)
    answer->facts.push_back(StrCat("it ran for ", FormatElapsed(record.ended_us - record.started_us)));
  if (record.started_us == 0) answer->facts.push_back("it never started");
  if (record.state == JobState::kFailed || record.state == JobState::kLost)
    answer->facts.push_back(StrCat("overcap logs ", record.spec.id, " shows what it wrote"));
}

void ExplainRun(const JobRecord& record, const PictureJob* row, int64_t now_us, WhyAnswer* answer) {
  answer->text = "it is running";
  const int64_t started_us = record.started_us > 0 ? record.started_us : row != nullptr ? row->started_us : 0;
  if (started_us > 0)
    answer->text += StrCat(", for ", FormatElapsed(std::max<int64_t>(0, now_us - started_us)));
  if (!record.reason.empty()) answer->facts.push_back(record.reason);
  if (row == nullptr) return;
  if (!row->nodes.empty()) answer->facts.push_back(StrCat("on ", Join(row->nodes, ", ")));
  if (row->time_limit_s > 0 && started_us > 0) {
    const int64_t left_s = row->time_limit_s - (now_us - started_us) / 1'000'000;
    answer->facts.push_back(left_s > 0 ? StrCat("its time limit ends it in ", FormatDuration(left_s))
                                       : "it has reached its time limit");
  }
  if (row->overcap) answer->facts.push_back("over the cap: it is preempted when the owners need the GPUs");
}

}  // namespace

std::optional<size_t> RowOf(const ClusterPicture& picture, const JobRecord& record) {
  std::optional<size_t> found;
  for (size_t i = 0; i < picture.jobs.size(); ++i) {
    const PictureJob& job = picture.jobs[i];
    const bool same =
        job.id == record.spec.id || (job.id.empty() && (job.native_id == record.spec.id ||
                                                        job.native_id.rfind(record.spec.id + "_", 0) == 0));
    if (!same) continue;
    if (!found || (!picture.jobs[*found].nodes.empty() && job.nodes.empty())) found = i;
  }
  return found;
}

WhyAnswer ExplainJob(const JobRecord& record, const ClusterPicture* picture, int64_t now_us) {
  WhyAnswer answer;
  if (IsFinal(record.state)) {
    ExplainEnd(record, &answer);
    return answer;
  }
  const auto at = picture == nullptr ? std::nullopt : RowOf(*picture, record);
  const PictureJob* row = at ? &picture->jobs[*at] : nullptr;
  if (record.state == JobState::kRunning && (row == nullptr || !row->nodes.empty())) {
    ExplainRun(record, row, now_us, &answer);
    return answer;
  }
  if (row == nullptr) {
    answer.text = !record.reason.empty()              ? record.reason
                  : record.state == JobState::kHeld   ? "held by its user"
                  : record.state == JobState::kQueued ? "nothing is known yet: it was submitted a moment ago"
                                                      : StrCat("its state is '", record.raw_state, "'");
    if (record.state == JobState::kHeld) answer.sooner.push_back(StrCat("overcap release ", record.spec.id));
    return answer;
  }
  if (!row->nodes.empty()) {
    answer.text = "it is about to start";
    answer.facts.push_back(StrCat("on ", Join(row->nodes, ", ")));
    return answer;
  }
  ExplainWait(*picture, *row, record.spec.id, &answer);
  if (row->estimated_start_us > now_us) answer.estimated_start_us = row->estimated_start_us;
  return answer;
}

namespace {

void WriteTime(std::string_view key, int64_t us, JsonWriter* json) {
  us > 0 ? json->Field(key, FormatTimeUtc(us)) : json->Key(key).Null();
}

void WriteStart(const WhyAnswer& answer, JsonWriter* json) {
  json->Key("start");
  if (answer.start) {
    const WhyStart& start = *answer.start;
    json->BeginObject().Field("now", start.now);
    WriteTime("p50", start.p50_us, json);
    WriteTime("p90", start.p90_us, json);
    json->Field("replays", start.replays)
        .Field("past_runs", start.past_runs)
        .Field("own_runs", start.own_runs)
        .Field("corrected_by", start.correction.promises);
    json->Field("assumed", start.assumed).EndObject();
  } else {
    json->Null();
  }
  json->Field("no_promise", answer.no_promise).Key("offers").BeginArray();
  for (const WhyOffer& offer : answer.offers) {
    json->BeginObject().Field("change", offer.change).Field("now", offer.now);
    WriteTime("start", offer.start_us, json);
    json->Field("note", offer.note).EndObject();
  }
  json->EndArray();
}

}  // namespace

std::string WhyToJson(const JobRecord& record, const WhyAnswer& answer) {
  JsonWriter json;
  json.BeginObject().Field("id", record.spec.id).Field("state", JobStateName(record.state));
  json.Field("text", answer.text).Field("reason", answer.reason).Field("facts", answer.facts);
  json.Field("sooner", answer.sooner);
  answer.estimated_start_us > 0 ? json.Field("estimated_start", FormatTimeUtc(answer.estimated_start_us))
                                : json.Key("estimated_start").Null();
  if (answer.jobs_ahead)
    json.Field("jobs_ahead", *answer.jobs_ahead).Field("gpus_ahead", answer.gpus_ahead.value_or(0));
  if (answer.cap) {
    json.Key("cap").BeginObject().Field("of", answer.cap->name).Field("thing", answer.cap->thing);
    json.Field("cap", answer.cap->cap).Field("used", answer.cap->used).Key("by").BeginObject();
    for (const auto& [who, count] : answer.cap->by) json.Field(who, count);
    json.EndObject().EndObject();
  }
  WriteStart(answer, &json);
  return json.EndObject().Take();
}

}  // namespace overcap
