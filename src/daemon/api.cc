// SPDX-License-Identifier: Apache-2.0
#include "daemon/api.h"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "model/json_fields.h"
#include "model/machine_json.h"
#include "model/policy/policy_text.h"
#include "model/request_limits.h"
#include "model/spec_from_json.h"
#include "net/frame.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

constexpr size_t kRecentlyEnded = 20;
constexpr size_t kReplySlack = 1024;        // for the text around the jobs in a reply
constexpr size_t kMostExpanded = 12;        // a spec in two columns, each byte as an escape of six bytes
constexpr size_t kMostRowBytes = 64 << 10;  // of a row without its user's texts
constexpr size_t kFewRefs = 8;              // looked up one by one; for more of them an index is made
constexpr int64_t kLongestWaitSeconds = 365LL * 86400;
constexpr std::array kStates = {JobState::kHeld,      JobState::kQueued, JobState::kRunning,
                                JobState::kSucceeded, JobState::kFailed, JobState::kCancelled,
                                JobState::kPreempted, JobState::kLost};

// Root and the only user of an engine have no bounds.
bool IsBounded(const Asker& asker) {
  return !asker.only_user && !asker.root();
}

Result<std::vector<std::string>> Strings(const Json& request, const char* key, const Asker& asker) {
  std::vector<std::string> values;
  const auto found = request.find(key);
  if (found == request.end() || !found->is_array())
    return Fail(ErrorCode::kUsage, StrCat("request without '", key, "'"));
  if (IsBounded(asker) && found->size() > kMaxRequestItems)
    return Fail(
        ErrorCode::kUsage,
        StrCat("'", key, "' has ", found->size(), " entries, at most ", kMaxRequestItems, " are possible"),
        "ask in parts");
  for (const Json& value : *found) {
    if (!value.is_string())
      return Fail(ErrorCode::kUsage, StrCat("'", key, "' has something that is no text"));
    values.push_back(value.get<std::string>());
  }
  return values;
}

// Without duplicates, in the order of their first occurrence.
std::vector<std::string> Unique(std::vector<std::string> values) {
  std::unordered_set<std::string> seen;
  std::erase_if(values, [&](const std::string& value) { return !seen.insert(value).second; });
  return values;
}

size_t MostReplyBytes(const Asker& asker) {
  return IsBounded(asker) ? kMaxReplyBytes : kMaxFrameBytes;
}

// Whether `more` bytes still fit into a reply.
bool HasRoom(const JsonWriter& out, size_t more, const Asker& asker) {
  return out.Text().size() + more + kReplySlack <= MostReplyBytes(asker);
}

tl::unexpected<Error> TooMuch(const Asker& asker) {
  return Fail(
      ErrorCode::kUsage,
      StrCat("the reply would be larger than ", FormatBytes(static_cast<int64_t>(MostReplyBytes(asker)))),
      "ask for fewer jobs: name fewer ids, or give `ls` --since, --user or --status");
}

std::string Ok(std::string_view value) {
  return JsonWriter().BeginObject().Key("ok").Raw(value).EndObject().Take();
}

// What `list` shows of a job in a table; one entry per column name.
struct Column {
  std::string_view name;
  void (*write)(const Job& job, JsonWriter* out);
};
void WriteTime(int64_t us, JsonWriter* out) {
  if (us == 0) {
    out->Null();
  } else {
    out->Int(us);
  }
}
std::string PartitionOf(const Job& job) {
  return PartitionText(job.state, job.progress.partition, job.spec.placement.partitions);
}

constexpr std::array kColumns = {
    Column{"id", [](const Job& job, JsonWriter* out) { out->String(job.spec.id); }},
    Column{"state", [](const Job& job, JsonWriter* out) { out->String(JobStateName(job.state)); }},
    Column{"lab", [](const Job& job, JsonWriter* out) { out->String(job.spec.lab); }},
    Column{"partition", [](const Job& job, JsonWriter* out) { out->String(PartitionOf(job)); }},
    Column{"user", [](const Job& job, JsonWriter* out) { out->String(job.spec.user); }},
    Column{"name", [](const Job& job, JsonWriter* out) { out->String(job.spec.name); }},
    Column{"gpus", [](const Job& job, JsonWriter* out) { out->Int(job.spec.resources.gpus); }},
    Column{"nodes", [](const Job& job, JsonWriter* out) { out->Int(job.spec.resources.nodes); }},
    Column{"attempt", [](const Job& job, JsonWriter* out) { out->Int(job.progress.attempt); }},
    Column{"exit_status",
           [](const Job& job, JsonWriter* out) { out->Int(job.ended() ? job.ending.exit_status : -1); }},
    Column{"reason", [](const Job& job, JsonWriter* out) { out->String(job.ending.reason); }},
    Column{"array", [](const Job& job, JsonWriter* out) { out->String(FormatArraySpec(job.spec.array)); }},
    Column{"submitted_us", [](const Job& job, JsonWriter* out) { out->Int(job.spec.submitted_us); }},
    Column{"started_us", [](const Job& job, JsonWriter* out) { WriteTime(job.progress.started_us, out); }},
    Column{"ended_us", [](const Job& job, JsonWriter* out) { WriteTime(job.progress.ended_us, out); }},
    Column{"command",
           [](const Job& job, JsonWriter* out) { out->String(ToUtf8(ShellJoin(job.spec.command))); }},
    Column{"argv",
           [](const Job& job, JsonWriter* out) {
             out->BeginArray();
             for (const std::string& word : job.spec.command) WriteBytes(out, word);
             out->EndArray();
           }},
    Column{"snapshot", [](const Job& job, JsonWriter* out) { out->String(job.spec.snapshot); }},
    Column{"environment", [](const Job& job, JsonWriter* out) { out->String(job.spec.environment); }},
};

struct ListFilter {
  std::vector<JobState> states;
  std::string user;
  bool own = false;
  int64_t since_us = 0;
  bool all = false;

  bool Takes(const Job& job) const {
    if (!states.empty() && std::find(states.begin(), states.end(), job.state) == states.end()) return false;
    if (!user.empty() && job.spec.user != user) return false;
    return since_us == 0 || std::max(job.spec.submitted_us, job.progress.ended_us) >= since_us;
  }
};

Result<ListFilter> ReadFilter(const Json& request, const Asker& asker) {
  ListFilter filter;
  if (request.contains("states")) {
    OC_TRY(names, Strings(request, "states", asker));
    for (const std::string& name : names) {
      const auto state = JobStateFromName(name);
      if (!state) return Fail(ErrorCode::kUsage, StrCat("unknown state '", name, "'"));
      filter.states.push_back(*state);
    }
  }
  filter.user = request.value("user", "");
  filter.since_us = request.value("since_us", int64_t{0});
  filter.all = request.value("all", false);
  filter.own = request.value("own", false);
  return filter;
}

// In order of submission; without `all`, `states` or `since_us` only the last few that have ended.
std::vector<const Job*> Select(const JobTable& table, const ListFilter& filter, const Asker& asker) {
  std::vector<const Job*> selected;
  const bool short_list = !filter.all && filter.states.empty() && filter.since_us == 0;
  size_t ended = 0;
  std::vector<const Job*> latest;
  for (const auto& [key, job] : table.jobs()) {
    if (!filter.Takes(*job) || (filter.own && !Owns(asker, *job))) continue;
    if (short_list && job->ended()) {
      ++ended;
      latest.push_back(job.get());
    } else {
      selected.push_back(job.get());
    }
  }
  const auto later = [](const Job* a, const Job* b) {
    return std::pair(a->progress.ended_us, a->key) > std::pair(b->progress.ended_us, b->key);
  };
  if (ended > kRecentlyEnded) {
    std::nth_element(latest.begin(), latest.begin() + kRecentlyEnded, latest.end(), later);
    latest.resize(kRecentlyEnded);
  }
  selected.insert(selected.end(), latest.begin(), latest.end());
  std::sort(selected.begin(), selected.end(), [](const Job* a, const Job* b) { return a->key < b->key; });
  return selected;
}

void WriteCounts(const JobTable& table, JsonWriter* out) {
  out->Key("counts").BeginObject();
  for (const JobState state : kStates) out->Field(JobStateName(state), table.Count(state));
  out->EndObject();
}

}  // namespace

std::string ErrorReply(const Error& error) {
  JsonWriter out;
  out.BeginObject().Key("error").BeginObject();
  out.Field("code", ErrorCodeName(error.code)).Field("message", error.message).Field("hint", error.hint);
  return out.EndObject().EndObject().Take();
}

// Finds jobs by the last characters of their ids, for requests with very many references.
class SuffixIndex {
 public:
  SuffixIndex(const JobTable& table, const std::function<bool(const Job&)>& among, bool wanted) {
    if (!wanted) return;
    for (const auto& [key, job] : table.jobs()) {
      if (among(*job)) ids_.emplace_back(job->spec.id.rbegin(), job->spec.id.rend());
    }
    std::sort(ids_.begin(), ids_.end());
  }

  // The only id that ends with `ref`; "": there is none or more than one, or the index was not made.
  std::string Find(std::string_view ref) const {
    const std::string reversed(ref.rbegin(), ref.rend());
    const auto found = std::lower_bound(ids_.begin(), ids_.end(), reversed);
    if (ref.empty() || ref == "last" || found == ids_.end() || !found->starts_with(reversed)) return {};
    const bool only = found + 1 == ids_.end() || !(found + 1)->starts_with(reversed);
    return only || *found == reversed ? std::string(found->rbegin(), found->rend()) : std::string();
  }

 private:
  std::vector<std::string> ids_;  // backwards
};

// One function per op; all have the same shape so that they can stand in one table.
struct ApiOps {
  using Reply = Result<Handled>;

  static Handled Done(std::string_view value) { return {Ok(value), std::nullopt, false}; }

  // The reply to a request that was carried out: its jobs.
  static Reply Records(const Api& api, const std::vector<std::string>& ids, const Asker& asker) {
    JsonWriter out;
    out.BeginObject();
    if (const size_t rest = WriteRecords(api, ids, false, asker, &out); rest > 0) out.Field("left_off", rest);
    out.EndObject();
    return Done(out.Text());
  }

  // As the asker may see it.
  static std::string RecordFor(const Api& api, const Job& job, bool in_detail, const Asker& asker) {
    const bool all = MaySee(asker, job, api.engine_.policy());
    return RecordToJson(all ? api.engine_.RecordOf(job, in_detail) : api.engine_.PublicRecordOf(job),
                        api.clock_.WallUs());
  }

  // Writes as many as fit and returns the number of the others. With a policy, explaining why a job waits
  // takes a look at the whole queue, so only the first few are explained.
  static size_t WriteRecords(const Api& api, const std::vector<std::string>& ids, bool in_detail,
                             const Asker& asker, JsonWriter* out) {
    size_t written = 0;
    size_t explained = 0;
    out->Key("jobs").BeginArray();
    for (const std::string& id : ids) {
      const Job* job = api.engine_.table().Find(id);
      if (job == nullptr) {  // removed while it was waited for
        ++written;
        continue;
      }
      const bool waits = job->state == JobState::kQueued && api.engine_.policy() != nullptr;
      const bool detail = in_detail && (!waits || ++explained <= kMaxExplainedJobs);
      const std::string record = RecordFor(api, *job, detail, asker);
      if (!HasRoom(*out, record.size(), asker)) break;
      out->Raw(record);
      ++written;
    }
    out->EndArray();
    return ids.size() - written;
  }

  static Result<std::vector<std::string>> KnownIds(const Api& api, const Json& request, const Asker& asker) {
    OC_TRY(named, Strings(request, "ids", asker));
    std::vector<std::string> ids = Unique(std::move(named));
    for (const std::string& id : ids) {
      if (api.engine_.table().Find(id) == nullptr)
        return Fail(ErrorCode::kNotFound, StrCat("no job '", id, "'"));
    }
    return ids;
  }

  // Those that the asker may stop.
  static Result<std::vector<std::string>> OwnIds(const Api& api, const Json& request, const Asker& asker,
                                                 std::string_view verb) {
    OC_TRY(ids, KnownIds(api, request, asker));
    for (const std::string& id : ids)
      OC_TRY_VOID(CheckMayStop(asker, *api.engine_.table().Find(id), api.engine_.policy(), verb));
    return ids;
  }

  static Reply Status(Api& api, const Json&, const Asker& asker) {
    const EngineInfo& info = api.info_;
    JsonWriter out;
    out.BeginObject().Field("version", info.version).Field("pid", info.pid).Field("socket", info.socket);
    out.Field("root", info.root).Field("started", FormatTimeUtc(info.started_us));
    out.Field("uptime_s", (api.clock_.MonotonicUs() - info.started_monotonic_us) / 1'000'000);
    out.Key("machine").Raw(MachineToJson(api.engine_.machine()));
    WriteCounts(api.engine_.table(), &out);
    out.Field("gpus_free", api.engine_.FreeGpus());
    out.Field("journal_bytes", api.engine_.journal().SizeBytes());
    if (api.policy_file_ != nullptr && !api.policy_file_->text().empty())
      out.Field("policy", api.policy_file_->path()).Field("policy_problem", api.policy_file_->problem());
    if (!asker.only_user) out.Field("system", true).Field("area", asker.area);
    if (!info.gpu_problem.empty()) out.Field("gpu_problem", info.gpu_problem);
    return Done(out.EndObject().Text());
  }

  static Reply Configure(Api& api, const Json& request, const Asker& asker) {
    OC_TRY_VOID(CheckMayRuleEngine(asker, "configure"));
    const auto found = request.find("machine");
    if (found == request.end()) return Fail(ErrorCode::kUsage, "request without 'machine'");
    OC_TRY(machine, ReadMachine(*found));
    OC_TRY(changed, api.engine_.Configure(machine));
    return Done(JsonWriter().BeginObject().Field("changed", changed).EndObject().Text());
  }

  static Reply Submit(Api& api, const Json& request, const Asker& asker) {
    const auto found = request.find("spec");
    if (found == request.end()) return Fail(ErrorCode::kUsage, "request without 'spec'");
    OC_TRY(spec, ReadSpec(*found));
    const bool known = api.engine_.table().Find(spec.id) != nullptr;
    if (asker.only_user && !known && request.contains("machine")) OC_TRY_VOID(Configure(api, request, asker));
    OC_TRY(stamped,
           StampSpec(std::move(spec), asker, api.engine_.policy(), api.engine_.table(), api.clock_.WallUs()));
    if (api.engine_.table().Find(stamped.id) == nullptr) OC_TRY_VOID(CheckSpecSize(stamped));
    auto submitted = api.engine_.Submit(stamped);
    if (!submitted) return Fail(ExplainMachine(api, request, std::move(submitted).error()));
    const Job* job = *submitted;
    return Done(RecordFor(api, *job, true, asker));
  }

  static Result<void> CheckSpecSize(const JobSpec& spec) {
    const size_t bytes = SpecToJson(spec).size();
    if (bytes <= kMaxSpecBytes) return {};
    return Fail(ErrorCode::kUsage,
                StrCat("the job's spec has ", bytes, " bytes, at most ", kMaxSpecBytes, " are possible"),
                "write a long command into a file that the job runs");
  }

  // A job that fits its own configuration but not what the engine has now.
  static Error ExplainMachine(const Api& api, const Json& request, Error error) {
    const auto declared = request.find("machine");
    if (error.code != ErrorCode::kUsage || declared == request.end()) return error;
    const auto machine = ReadMachine(*declared);
    if (!machine || *machine == api.engine_.machine()) return error;
    error.hint =
        "jobs that have not ended use the engine with another configuration: wait for them, or set "
        "OVERCAP_HOME to "
        "another folder";
    return error;
  }

  static Reply Query(Api& api, const Json& request, const Asker& asker) {
    OC_TRY(ids, KnownIds(api, request, asker));
    JsonWriter out;
    out.BeginObject();
    if (WriteRecords(api, ids, true, asker, &out) > 0) return TooMuch(asker);
    return Done(out.EndObject().Text());
  }

  static Reply Resolve(Api& api, const Json& request, const Asker& asker) {
    OC_TRY(refs, Strings(request, "refs", asker));
    const JobTable& table = api.engine_.table();
    const auto own = [&](const Job& job) { return Owns(asker, job); };
    std::unordered_map<std::string_view, std::string> known;
    const SuffixIndex suffixes(table, own, refs.size() > kFewRefs);
    JsonWriter out;
    out.BeginObject().Key("ids").BeginArray();
    for (const std::string& ref : refs) {
      std::string& id = known[ref];
      if (id.empty()) id = suffixes.Find(ref);
      if (id.empty()) {
        OC_TRY(found, table.Resolve(ref, own));
        id = std::move(found);
      }
      out.String(id);
    }
    out.EndArray().EndObject();
    return Done(out.Text());
  }

  static Reply List(Api& api, const Json& request, const Asker& asker) {
    OC_TRY(filter, ReadFilter(request, asker));
    std::vector<const Job*> jobs = Select(api.engine_.table(), filter, asker);
    const uint64_t from = request.value("from", uint64_t{0});
    std::erase_if(jobs, [from](const Job* job) { return job->key < from; });
    JsonWriter out;
    out.BeginObject();
    WriteCounts(api.engine_.table(), &out);
    const Job* left = nullptr;  // the first that did not fit
    if (request.contains("columns")) {
      OC_TRY(names, Strings(request, "columns", asker));
      OC_TRY(columns, ColumnsOf(names));
      left = WriteRows(api, jobs, columns, asker, &out);
    } else {
      out.Key("jobs").BeginArray();
      for (const Job* job : jobs) {
        const std::string record = RecordFor(api, *job, false, asker);
        if (!HasRoom(out, record.size(), asker)) {
          left = job;
          break;
        }
        out.Raw(record);
      }
      out.EndArray();
    }
    const bool goes_on = request.value("paged", false) && left != nullptr && left != jobs.front();
    if (left != nullptr && !goes_on) return TooMuch(asker);
    if (left != nullptr) out.Field("next", left->key);
    return Done(out.EndObject().Text());
  }

  static Result<std::vector<const Column*>> ColumnsOf(const std::vector<std::string>& names) {
    std::vector<const Column*> columns;
    for (const std::string& name : names) {
      const auto column =
          std::find_if(kColumns.begin(), kColumns.end(), [&](const Column& c) { return c.name == name; });
      if (column == kColumns.end()) return Fail(ErrorCode::kUsage, StrCat("unknown column '", name, "'"));
      if (std::find(columns.begin(), columns.end(), &*column) != columns.end())
        return Fail(ErrorCode::kUsage, StrCat("column '", name, "' is named twice"));
      columns.push_back(&*column);
    }
    return columns;
  }

  // The first job whose row did not fit; nullptr: all did.
  static const Job* WriteRows(const Api& api, const std::vector<const Job*>& jobs,
                              const std::vector<const Column*>& columns, const Asker& asker,
                              JsonWriter* out) {
    const Job* left = nullptr;
    out->Key("rows").BeginArray();
    for (const Job* job : jobs) {
      const bool all = MaySee(asker, *job, api.engine_.policy());
      const std::optional<Job> open = all ? std::nullopt : std::optional(PublicJob(*job));
      const auto write = [&](JsonWriter* to) {
        to->BeginArray();
        for (const Column* column : columns) column->write(open ? *open : *job, to);
        to->EndArray();
      };
      if (HasRoom(*out, static_cast<size_t>(job->spec_bytes) * kMostExpanded + kMostRowBytes, asker)) {
        write(out);
        continue;
      }
      JsonWriter row;
      write(&row);
      if (!HasRoom(*out, row.Text().size(), asker)) {
        left = job;
        break;
      }
      out->Raw(row.Text());
    }
    out->EndArray();
    return left;
  }

  static Reply Cancel(Api& api, const Json& request, const Asker& asker) {
    OC_TRY(ids, OwnIds(api, request, asker, "stopped"));
    std::string reason = request.value("reason", "cancelled by the user");
    if (!asker.only_user) reason = StrCat("cancelled by ", asker.user);  // others read it
    for (const std::string& id : ids) OC_TRY_VOID(api.engine_.Cancel(id, reason));
    return Records(api, ids, asker);
  }

  static Reply Hold(Api& api, const Json& request, const Asker& asker) {
    OC_TRY(ids, OwnIds(api, request, asker, "held"));
    OC_TRY_VOID(api.engine_.Hold(ids));
    return Records(api, ids, asker);
  }

  static Reply Release(Api& api, const Json& request, const Asker& asker) {
    OC_TRY(ids, OwnIds(api, request, asker, "released"));
    for (const std::string& id : ids) OC_TRY_VOID(api.engine_.Release(id));
    return Records(api, ids, asker);
  }

  static Reply Wait(Api& api, const Json& request, const Asker& asker) {
    WaitRequest wait;
    OC_TRY(ids, KnownIds(api, request, asker));
    wait.ids = std::move(ids);
    wait.asker = asker;
    wait.until_started = request.value("until", "ended") == "started";
    if (request.contains("problem")) wait.problem = request.value("problem", "");
    const int64_t seconds =
        std::clamp<int64_t>(request.value("timeout_s", int64_t{0}), 0, kLongestWaitSeconds);
    wait.deadline_us = api.clock_.MonotonicUs() + seconds * 1'000'000;
    return Handled{"", std::move(wait), false};
  }

  static Reply Remove(Api& api, const Json& request, const Asker& asker) {
    OC_TRY(ids, KnownIds(api, request, asker));
    for (const std::string& id : ids) OC_TRY_VOID(CheckMayRemove(asker, *api.engine_.table().Find(id)));
    OC_TRY_VOID(api.engine_.Remove(ids));
    return Done(JsonWriter().BeginObject().Field("removed", ids.size()).EndObject().Text());
  }

  // With `text`: the policy from now on, unless it shall only be checked. Without: the one in force.
  static Reply ThePolicy(Api& api, const Json& request, const Asker& asker) {
    if (request.contains("text")) {
      if (!IsAdmin(asker, api.engine_.policy()))
        OC_TRY_VOID(CheckMayRuleEngine(asker, "change the policy of"));
      const std::string text = request.at("text").get<std::string>(), file = request.value("file", "policy");
      OC_TRY(policy, CheckPolicy(api, text, file));
      if (!request.value("check", false)) {
        OC_TRY_VOID(api.policy_file_->Install(text));
        OC_TRY_VOID(api.engine_.SetPolicy(std::move(policy), true));
      }
    }
    JsonWriter out;
    out.BeginObject().Key("text");
    if (api.policy_file_ == nullptr || api.policy_file_->text().empty())
      out.Null();
    else
      out.String(api.policy_file_->text());
    out.Field("file", api.policy_file_ == nullptr ? "" : api.policy_file_->path());
    out.Field("problem", api.policy_file_ == nullptr ? "" : api.policy_file_->problem());
    return Done(out.EndObject().Text());
  }

  static Result<Policy> CheckPolicy(const Api& api, const std::string& text, const std::string& file) {
    if (api.policy_file_ == nullptr) return Fail(ErrorCode::kUsage, "this engine takes no policy");
    if (text.size() > kMaxPolicyBytes)
      return Fail(ErrorCode::kUsage, StrCat("'", file, "' is larger than a policy may be"));
    OC_TRY(policy, ParsePolicy(text, file));
    OC_TRY_VOID(pooled::MachinePool::Make(policy, api.engine_.machine(), true));
    return policy;
  }

  static Reply Stop(Api&, const Json&, const Asker& asker) {
    OC_TRY_VOID(CheckMayRuleEngine(asker, "stop"));
    Handled handled = Done("{}");
    handled.stop = true;
    return handled;
  }
};

struct Api::Op {
  std::string_view name;
  Result<Handled> (*run)(Api& api, const Json& request, const Asker& asker);
};

// Every reply begins with the engine's problem, if it has one.
std::string Api::WithProblem(std::string reply) const {
  constexpr std::string_view kObject = "{\"ok\":{";
  const std::string problem = engine_.Problem();
  if (problem.empty() || !reply.starts_with(kObject)) return reply;
  JsonWriter field;
  field.BeginObject().Field("problem", problem);
  std::string text(field.Text().substr(1));
  if (reply[kObject.size()] != '}') text += ',';
  return reply.insert(kObject.size(), text);
}

Handled Api::Handle(std::string_view text, const Asker& asker) {
  static constexpr std::array<Op, 13> kOps = {{
      {"status", &ApiOps::Status},
      {"configure", &ApiOps::Configure},
      {"submit", &ApiOps::Submit},
      {"query", &ApiOps::Query},
      {"resolve", &ApiOps::Resolve},
      {"list", &ApiOps::List},
      {"cancel", &ApiOps::Cancel},
      {"hold", &ApiOps::Hold},
      {"release", &ApiOps::Release},
      {"wait", &ApiOps::Wait},
      {"remove", &ApiOps::Remove},
      {"policy", &ApiOps::ThePolicy},
      {"stop", &ApiOps::Stop},
  }};
  try {
    const auto parsed = ParseJsonObject(text, "it");
    if (!parsed)
      return {ErrorReply({ErrorCode::kUsage, StrCat("not a request: ", parsed.error().message), ""}),
              std::nullopt, false};
    const Json& request = *parsed;
    const std::string name = request.at("op").get<std::string>();
    for (const Op& op : kOps) {
      if (op.name != name) continue;
      auto handled = op.run(*this, request, asker);
      if (handled) handled->reply = WithProblem(std::move(handled->reply));
      return handled ? *std::move(handled) : Handled{ErrorReply(handled.error()), std::nullopt, false};
    }
    const Error unknown{ErrorCode::kUsage, StrCat("unknown op '", name, "'"),
                        "the engine is of another version: 'overcap daemon stop', then try again"};
    return {ErrorReply(unknown), std::nullopt, false};
  } catch (const std::exception& error) {
    return {ErrorReply({ErrorCode::kUsage, StrCat("not a request: ", error.what()), ""}), std::nullopt,
            false};
  }
}

std::optional<std::string> Api::Check(const WaitRequest& wait) const {
  for (; wait.first_open < wait.ids.size(); ++wait.first_open) {
    const Job* job = engine_.table().Find(wait.ids[wait.first_open]);
    const bool come = job == nullptr || job->ended() || (wait.until_started && job->progress.started_us != 0);
    if (!come) break;
  }
  const bool done = wait.first_open == wait.ids.size();
  // A client that reports problems gets a new one at once.
  const bool news = wait.problem && *wait.problem != engine_.Problem();
  if (!done && !news && clock_.MonotonicUs() < wait.deadline_us) return std::nullopt;
  JsonWriter out;
  out.BeginObject().Field("done", done);
  if (const size_t rest = ApiOps::WriteRecords(*this, wait.ids, false, wait.asker, &out); rest > 0)
    out.Field("left_off", rest);
  out.EndObject();
  return WithProblem(Ok(out.Text()));
}

}  // namespace overcap
