// SPDX-License-Identifier: Apache-2.0
#include "clusters/local/local_cluster.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <unistd.h>

#include "base/json_scan.h"
#include "base/text.h"
#include "clusters/local/records.h"
#include "clusters/plan_text.h"
#include "clusters/shut_files.h"
#include "model/fits.h"
#include "model/json_fields.h"
#include "model/machine_json.h"
#include "sys/user.h"

namespace overcap {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int64_t kWaitSlice = 300;  // seconds of one `wait` request

JsonWriter Request(std::string_view op) {
  JsonWriter out;
  out.BeginObject().Field("op", op);
  return out;
}

JsonWriter Request(std::string_view op, std::string_view key, const std::vector<std::string>& values) {
  JsonWriter out = Request(op);
  out.Key(key).BeginArray();
  for (const std::string& value : values) out.String(value);
  out.EndArray();
  return out;
}

}  // namespace

LocalCluster::LocalCluster(Options options)
    : options_(std::move(options)),
      client_({options_.root, options_.binary, [this] { return MachineToJson(GetMachine(true)); },
               options_.socket, options_.system, options_.tell}),
      policy_([this](std::string_view request) { return client_.Call(request); }) {}

Result<Machine> LocalCluster::AskForMachine() const {
  OC_TRY(reply, client_.Call("{\"op\":\"status\"}"));
  return MachineFromJson(JsonMember(reply, "machine"));
}

const Machine& LocalCluster::GetMachine(bool fresh) const {
  if (!machine_ && options_.system) {
    if (auto asked = AskForMachine()) machine_ = std::move(*asked);
  }
  if (!options_.system && (!machine_ || fresh)) machine_ = options_.machine(fresh);
  static const Machine unknown;
  return machine_ ? *machine_ : unknown;
}

Capabilities LocalCluster::GetCapabilities() const {
  return {.hold = true,
          .array = true,
          .dependencies = true,
          .local_files = true,
          .placement = options_.system || access((options_.root + "/policy.yaml").c_str(), F_OK) == 0,
          .warning = true,
          .timeout_requeue = true,
          .stores = !options_.system,
          .max_nodes = 1,
          .nodes = {{GetMachine(), {}, {}, {}}}};
}

Result<std::string> LocalCluster::Call(const JsonWriter& request) {
  return client_.Call(StrCat(request.Text(), "}"));
}

Result<SubmitPlan> LocalCluster::Plan(const JobSpec& spec) {
  OC_TRY_VOID(ValidateSpec(spec));
  if (spec.requeue_on_timeout && !spec.array.empty()) {
    return Fail(ErrorCode::kUsage,
                StrCat("cluster '", spec.cluster, "' cannot requeue tasks of an array at their time limit"),
                "submit them as jobs of their own, or leave out --requeue-on-timeout");
  }
  if (options_.system && !machine_) {
    OC_TRY(machine, AskForMachine());
    machine_ = std::move(machine);
  }
  OC_TRY_VOID(CheckFits(spec.resources, GetMachine()));
  return SubmitPlan{spec, PlanText(spec)};
}

Result<std::vector<JobRecord>> LocalCluster::ShutOthers(Result<std::vector<JobRecord>> records) const {
  if (!options_.system || !records) return records;
  const std::string own = UserName();
  for (JobRecord& record : *records) {
    if (record.spec.user != own) ShutFiles(&record);
  }
  return records;
}

Result<JobRecord> LocalCluster::Submit(const SubmitPlan& plan) {
  JsonWriter request = Request("submit");
  request.Key("spec").Raw(SpecToJson(plan.spec));
  request.Key("machine").Raw(MachineToJson(GetMachine()));
  const std::string text = StrCat(request.Text(), "}");
  auto reply = client_.Call([&] { return EngineRequest{text}; }, plan.spec.id);
  auto record = reply ? RecordFromJson(*reply) : Result<JobRecord>(Fail(reply.error()));
  if (record || !(reply || client_.maybe_done())) return record;
  Error error = std::move(record).error();
  if (!reply) error.code = ErrorCode::kUnavailable;
  error.message += StrCat("; the job may have been queued as ", plan.spec.id);
  error.hint = StrCat("overcap query ", plan.spec.id);
  return Fail(std::move(error));
}

Result<std::vector<JobRecord>> LocalCluster::Query(const std::vector<std::string>& ids) {
  OC_TRY(reply, Call(Request("query", "ids", ids)));
  OC_TRY(records, ShutOthers(ReadRecords(reply)));
  if (records.size() == ids.size()) return records;
  // The engine answers an id once however often it is asked for.
  std::vector<JobRecord> asked;
  for (const std::string& id : ids) {
    const auto found = std::ranges::find(records, id, [](const JobRecord& one) { return one.spec.id; });
    if (found != records.end()) asked.push_back(*found);
  }
  return asked;
}

Result<std::vector<JobRecord>> LocalCluster::List(const JobFilter& filter) {
  JsonWriter request = Request("list");
  request.Key("states").BeginArray();
  for (const JobState state : filter.states) request.String(JobStateName(state));
  request.EndArray();
  if (!filter.user.empty()) request.Field("user", filter.user);
  if (filter.own) request.Field("own", true);
  if (filter.since_us > 0) request.Field("since_us", filter.since_us);
  request.Field("all", filter.all);
  if (filter.detail != ListDetail::kFull) request.Key("columns").Raw(ListColumns(filter.detail));
  request.Field("paged", true);
  std::vector<JobRecord> all;
  for (int64_t from = 0;;) {
    JsonWriter page = request;
    if (from > 0) page.Field("from", from);
    OC_TRY(reply, Call(page));
    OC_TRY(records, filter.detail == ListDetail::kFull ? ReadRecords(reply) : ReadRows(reply, filter.detail));
    all.empty() ? all.swap(records)
                : void(all.insert(all.end(), std::make_move_iterator(records.begin()),
                                  std::make_move_iterator(records.end())));
    const int64_t next = ParseInt(JsonMember(reply, "next")).value_or(0);
    if (next <= from) return ShutOthers(std::move(all));
    from = next;
  }
}

Result<std::vector<std::string>> LocalCluster::Resolve(const std::vector<std::string>& refs) {
  OC_TRY(reply, Call(Request("resolve", "refs", refs)));
  std::vector<std::string> ids;
  for (const std::string_view id : JsonElements(JsonMember(reply, "ids")))
    ids.push_back(JsonString(id).value_or(""));
  if (ids.size() != refs.size()) return Fail(ErrorCode::kInternal, "the engine's list of ids cannot be read");
  return ids;
}

Result<void> LocalCluster::Cancel(const std::vector<std::string>& ids, const std::string& reason) {
  JsonWriter request = Request("cancel", "ids", ids);
  request.Field("reason", reason);
  OC_TRY_VOID(Call(request));
  return {};
}

Result<void> LocalCluster::Hold(const std::vector<std::string>& ids) {
  OC_TRY_VOID(Call(Request("hold", "ids", ids)));
  return {};
}

Result<void> LocalCluster::Release(const std::vector<std::string>& ids) {
  OC_TRY_VOID(Call(Request("release", "ids", ids)));
  return {};
}

Result<void> LocalCluster::Remove(const std::vector<std::string>& ids) {
  auto reply = Call(Request("remove", "ids", ids));
  if (reply) return {};
  // The engine had removed them when the connection broke.
  if (client_.resent() && reply.error().code == ErrorCode::kNotFound) return {};
  return Fail(std::move(reply).error());
}

Result<bool> LocalCluster::Wait(const std::vector<std::string>& ids, WaitUntil until,
                                int64_t timeout_seconds) {
  JsonWriter head = Request("wait", "ids", ids);
  head.Field("until", until == WaitUntil::kStarted ? "started" : "ended");
  const auto deadline = steady_clock::now() + seconds(timeout_seconds);
  const auto rest = [&] {
    const auto left = std::chrono::ceil<seconds>(deadline - steady_clock::now()).count();
    const int64_t slice = std::clamp<int64_t>(left, 0, kWaitSlice);
    JsonWriter request = head;
    request.Field("timeout_s", slice);
    if (options_.tell) request.Field("problem", client_.problem());
    return EngineRequest{StrCat(request.Text(), "}"), seconds(slice)};
  };
  while (true) {
    OC_TRY(reply, client_.Call(rest));
    if (JsonMember(reply, "done") == "true") return true;
    if (steady_clock::now() >= deadline) return false;
  }
}

Result<std::vector<NodeInfo>> LocalCluster::Nodes() {
  OC_TRY(reply, Call(Request("status")));
  OC_TRY(machine, MachineFromJson(JsonMember(reply, "machine")));
  const int free = static_cast<int>(ParseInt(JsonMember(reply, "gpus_free")).value_or(0));
  NodeInfo node{.machine = std::move(machine), .gpus_free = free, .state = "up"};
  return std::vector<NodeInfo>{std::move(node)};
}

}  // namespace overcap
