// SPDX-License-Identifier: Apache-2.0
#include "control/promise_record.h"

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "model/json_fields.h"

namespace overcap {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr int64_t kGraceUs = 60'000'000;
constexpr int64_t kClockUs = 1'000'000;  // clusters tell starts in whole seconds
constexpr std::string_view kAll = "all";

std::optional<StartPromise> PromiseOf(const nlohmann::json& json) {
  StartPromise promise;
  FieldReader reader(json, "promise");
  reader.Read("cluster", &promise.cluster);
  reader.Read("job", &promise.job);
  reader.Read("partition", &promise.partition);
  reader.Read("made_us", &promise.made_us);
  reader.Read("p50_us", &promise.p50_us);
  reader.Read("p90_us", &promise.p90_us);
  reader.Read("replays", &promise.replays);
  reader.Read("past_runs", &promise.past_runs);
  reader.Read("foreseen_p50_us", &promise.foreseen_p50_us);
  reader.Read("foreseen_p90_us", &promise.foreseen_p90_us);
  const bool fine = reader.Check() && !promise.job.empty() && promise.made_us > 0 && promise.p50_us > 0 &&
                    promise.p50_us <= promise.p90_us && promise.p90_us < INT64_MAX / 4 &&
                    promise.foreseen_p50_us >= 0 && promise.foreseen_p50_us <= promise.foreseen_p90_us &&
                    promise.foreseen_p90_us < INT64_MAX / 4;
  return fine ? std::optional(promise) : std::nullopt;
}

std::optional<PromiseOutcome> OutcomeFrom(const nlohmann::json& json) {
  PromiseOutcome outcome;
  FieldReader reader(json, "outcome");
  reader.Read("cluster", &outcome.cluster);
  reader.Read("job", &outcome.job);
  reader.Read("start_us", &outcome.start_us);
  reader.Read("gone_us", &outcome.gone_us);
  reader.Read("at_us", &outcome.at_us);
  const bool fine = reader.Check() && outcome.start_us >= 0 && outcome.gone_us >= 0 &&
                    (outcome.start_us > 0) != (outcome.gone_us > 0) &&
                    std::max(outcome.start_us, outcome.gone_us) < INT64_MAX / 4;
  return fine ? std::optional(outcome) : std::nullopt;
}

void CountOne(const KeptPromise& kept, int64_t now_us, PromiseRow* row) {
  ++row->promises;
  const Kept p50 = Judge(kept, kept.promise.p50_us, now_us), p90 = Judge(kept, kept.promise.p90_us, now_us);
  row->p50_held += p50 == Kept::kHeld, row->p50_broken += p50 == Kept::kBroken;
  row->p90_held += p90 == Kept::kHeld, row->p90_broken += p90 == Kept::kBroken;
  row->open += p90 == Kept::kOpen, row->void_count += p90 == Kept::kVoid;
}

constexpr size_t kMostLearned = 100, kEnoughOfPartition = 20;

forecast::PastPromise LearnedFrom(const KeptPromise& kept, int64_t now_us) {
  const StartPromise& told = kept.promise;
  const auto wait_s = [&](int64_t foreseen_us, int64_t told_us) {
    return std::max<int64_t>(0, (foreseen_us > 0 ? foreseen_us : told_us) - told.made_us) / 1'000'000;
  };
  const bool started = kept.outcome && kept.outcome->start_us > 0;
  const int64_t until_us = started ? kept.outcome->start_us : kept.outcome ? kept.outcome->gone_us : now_us;
  return {wait_s(told.foreseen_p50_us, told.p50_us), wait_s(told.foreseen_p90_us, told.p90_us),
          std::max<int64_t>(0, until_us - told.made_us) / 1'000'000, started};
}

}  // namespace

forecast::Correction CorrectionOf(const std::vector<KeptPromise>& kept, const std::string& cluster,
                                  const std::string& partition, int64_t now_us) {
  std::vector<forecast::PastPromise> all, same;
  std::set<std::string_view> jobs;  // one counts once, with its last promise
  for (size_t i = kept.size(); i-- > 0;) {
    const StartPromise& told = kept[i].promise;
    if (told.cluster != cluster || told.p50_us <= told.made_us || !jobs.insert(told.job).second) continue;
    const forecast::PastPromise learned = LearnedFrom(kept[i], now_us);
    if (all.size() < kMostLearned) all.push_back(learned);
    if (told.partition == partition && same.size() < kMostLearned) same.push_back(learned);
  }
  return forecast::CorrectionFrom(same.size() >= kEnoughOfPartition ? same : all);
}

std::string PromiseLine(const StartPromise& promise) {
  JsonWriter json;
  json.BeginObject().Field("promise", 1).Field("cluster", promise.cluster).Field("job", promise.job);
  json.Field("partition", promise.partition).Field("made_us", promise.made_us);
  json.Field("p50_us", promise.p50_us).Field("p90_us", promise.p90_us);
  json.Field("replays", promise.replays).Field("past_runs", promise.past_runs);
  if (promise.foreseen_p50_us > 0)
    json.Field("foreseen_p50_us", promise.foreseen_p50_us).Field("foreseen_p90_us", promise.foreseen_p90_us);
  return json.EndObject().Take() + "\n";
}

std::string OutcomeLine(const PromiseOutcome& outcome) {
  JsonWriter json;
  json.BeginObject().Field("outcome", 1).Field("cluster", outcome.cluster).Field("job", outcome.job);
  json.Field("start_us", outcome.start_us).Field("gone_us", outcome.gone_us).Field("at_us", outcome.at_us);
  return json.EndObject().Take() + "\n";
}

std::vector<KeptPromise> ReadPromises(std::string_view text) {
  std::vector<KeptPromise> kept;
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> open;  // by cluster and job
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty() || line.size() > kLongestLine) continue;
    const auto json = ParseJsonObject(line, "promise");
    if (!json) continue;
    if (json->value("promise", nlohmann::json()) == 1) {
      auto promise = PromiseOf(*json);
      if (!promise) continue;
      open[{promise->cluster, promise->job}].push_back(kept.size());
      kept.push_back({*std::move(promise), {}});
    } else if (json->value("outcome", nlohmann::json()) == 1) {
      const auto outcome = OutcomeFrom(*json);
      if (!outcome) continue;
      std::vector<size_t>& theirs = open[{outcome->cluster, outcome->job}];
      const int64_t end_us = std::max(outcome->start_us, outcome->gone_us) + kClockUs;
      std::erase_if(theirs, [&](size_t at) {
        if (kept[at].promise.made_us > end_us) return false;
        kept[at].outcome = outcome;
        return true;
      });
    }
  }
  return kept;
}

Kept Judge(const KeptPromise& kept, int64_t told_us, int64_t now_us) {
  const int64_t until_us = told_us + kGraceUs;
  if (!kept.outcome) return now_us > until_us ? Kept::kBroken : Kept::kOpen;
  if (kept.outcome->start_us > 0) return kept.outcome->start_us <= until_us ? Kept::kHeld : Kept::kBroken;
  return kept.outcome->gone_us > until_us ? Kept::kBroken : Kept::kVoid;
}

std::vector<PromiseRow> CountPromises(const std::vector<KeptPromise>& kept, int64_t now_us) {
  std::map<std::pair<std::string, std::string>, PromiseRow> rows;
  std::map<std::pair<std::string, std::string>, std::set<std::string>> jobs;
  PromiseRow all;
  all.cluster = kAll;
  for (const KeptPromise& one : kept) {
    const auto key = std::make_pair(one.promise.cluster, one.promise.partition);
    PromiseRow& row = rows[key];
    row.cluster = key.first, row.partition = key.second;
    CountOne(one, now_us, &row);
    CountOne(one, now_us, &all);
    if (jobs[key].insert(one.promise.job).second) ++row.jobs, ++all.jobs;
  }
  std::vector<PromiseRow> counted;
  for (auto& [key, row] : rows) counted.push_back(std::move(row));
  if (counted.size() > 1) counted.push_back(std::move(all));
  return counted;
}

std::string PromisesToJson(const std::vector<PromiseRow>& rows) {
  JsonWriter json;
  json.BeginObject().Key("promises").BeginArray();
  for (const PromiseRow& row : rows) {
    json.BeginObject().Field("cluster", row.cluster).Field("partition", row.partition);
    json.Field("promises", row.promises).Field("jobs", row.jobs);
    json.Field("p50_held", row.p50_held).Field("p50_broken", row.p50_broken);
    json.Field("p90_held", row.p90_held).Field("p90_broken", row.p90_broken);
    json.Field("open", row.open).Field("void", row.void_count).EndObject();
  }
  return json.EndArray().EndObject().Take();
}

std::optional<PromiseOutcome> OutcomeOf(const StartPromise& promise, const JobRecord& record,
                                        int64_t now_us) {
  PromiseOutcome outcome{promise.cluster, promise.job, 0, 0, now_us};
  if (record.started_us > 0 && record.started_us + kClockUs >= promise.made_us) {
    outcome.start_us = record.started_us;
    return outcome;
  }
  if (!IsFinal(record.state)) return std::nullopt;
  outcome.gone_us = record.ended_us > 0 ? record.ended_us : now_us;
  return outcome;
}

}  // namespace overcap
