// SPDX-License-Identifier: Apache-2.0
#include "model/job_spec.h"

#include <algorithm>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/gpu_type.h"
#include "model/job_id.h"
#include "model/json_fields.h"
#include "model/request_limits.h"
#include "model/spec_from_json.h"

namespace overcap {
namespace {

using Json = nlohmann::json;

constexpr int kMaxCount = 1'000'000;
constexpr int kMaxWarnSeconds = 65'535;  // what Slurm can keep

tl::unexpected<Error> Bad(std::string message, std::string hint = {}) {
  return Fail(ErrorCode::kUsage, std::move(message), std::move(hint));
}

bool HasNul(std::string_view text) {
  return text.find('\0') != std::string_view::npos;
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && !HasNul(name) && name.find('=') == std::string_view::npos;
}

bool IsSha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool ClimbsOut(std::string_view path) {
  const std::vector<std::string> parts = Split(path, '/');
  return std::find(parts.begin(), parts.end(), "..") != parts.end();
}

Result<void> CheckCommand(const JobSpec& spec) {
  if (spec.command.empty())
    return Bad("there is no command", "write it after the flags: overcap submit -- CMD...");
  if (spec.command[0].empty()) return Bad("the command's first word is empty");
  for (const std::string& word : spec.command) {
    if (HasNul(word)) return Bad(StrCat("the command's word '", ToUtf8(word), "' has a NUL byte"));
  }
  return {};
}

Result<void> CheckCount(std::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value < min) return Bad(StrCat("'", field, "' is ", value, ", it must be at least ", min));
  if (value > max) return Bad(StrCat("'", field, "' is ", value, ", it must be at most ", max));
  return {};
}

Result<void> CheckName(std::string_view what, std::string_view name) {
  if (name.size() <= kMaxNameBytes) return {};
  return Bad(StrCat(what, " has ", name.size(), " bytes, at most ", kMaxNameBytes, " are possible"));
}

Result<void> CheckNames(const JobSpec& spec) {
  OC_TRY_VOID(CheckName("the job's name", spec.name));
  OC_TRY_VOID(CheckName("the cluster's name", spec.cluster));
  OC_TRY_VOID(CheckName("the GPU type", spec.resources.gpu_type));
  const Placement& place = spec.placement;
  OC_TRY_VOID(CheckName("the account", place.account));
  OC_TRY_VOID(CheckName("the QOS", place.qos));
  OC_TRY_VOID(CheckName("the node's name", place.node));
  if (place.partitions.size() > kMaxPartitions)
    return Bad(
        StrCat("names ", place.partitions.size(), " partitions, at most ", kMaxPartitions, " are possible"));
  for (const std::string& partition : place.partitions)
    OC_TRY_VOID(CheckName("the name of a partition", partition));
  return {};
}

Result<void> CheckResources(const Resources& resources) {
  OC_TRY_VOID(CheckCount("nodes", resources.nodes, 1, kMaxCount));
  OC_TRY_VOID(CheckCount("max_nodes", resources.max_nodes, 0, kMaxCount));
  if (resources.elastic() && resources.max_nodes < resources.nodes) {
    return Bad(StrCat("asks for at least ", resources.nodes, " nodes and at most ", resources.max_nodes));
  }
  OC_TRY_VOID(CheckCount("gpus", resources.gpus, 0, kMaxCount));
  OC_TRY_VOID(CheckCount("ranks_per_node", resources.ranks_per_node, 1, kMaxCount));
  OC_TRY_VOID(CheckCount("cpus", resources.cpus, 0, kMaxCount));
  OC_TRY_VOID(CheckCount("mem_bytes", resources.mem_bytes, 0, int64_t{1} << 60));
  OC_TRY_VOID(CheckCount("time_seconds", resources.time_seconds, 0, int64_t{100} * 366 * 86400));
  if (int64_t{resources.nodes} * resources.ranks_per_node > kMaxCount) {
    return Bad(StrCat("asks for ", int64_t{resources.nodes} * resources.ranks_per_node, " ranks, at most ",
                      kMaxCount, " are possible"));
  }
  if (resources.gpus % resources.nodes != 0) {
    return Bad(StrCat("asks for ", resources.gpus, " GPUs on ", resources.nodes,
                      " nodes: every node must get the same number"));
  }
  return CheckGpuTypeExpression(resources.gpu_type);
}

// Its group restarts what fails, so it is one command and begins on all nodes at once.
Result<void> CheckElastic(const JobSpec& spec) {
  if (!spec.resources.elastic()) return {};
  if (!spec.array.empty())
    return Bad("a range of nodes does not go with an array: each of its tasks has a fixed number");
  if (spec.batch) return Bad("a range of nodes does not go with a batch script: it starts its ranks itself");
  if (int64_t{spec.resources.max_nodes} * spec.resources.ranks_per_node > kMaxCount)
    return Bad(StrCat("asks for more than ", kMaxCount, " ranks"));
  return {};
}

// `workdir` becomes a path below the attempt's copy of the code, so it must not lead out of it.
Result<void> CheckPlace(const JobSpec& spec) {
  if (!spec.snapshot.empty() && !IsSha256(spec.snapshot)) return Bad("'snapshot' is no SHA-256");
  if (!spec.environment.empty() && !IsSha256(spec.environment)) return Bad("'environment' is no SHA-256");
  const std::string shown = ToUtf8(spec.workdir);
  const bool absolute = spec.workdir.starts_with('/');
  if (HasNul(spec.workdir)) return Bad(StrCat("workdir '", shown, "' has a NUL byte"));
  if (spec.snapshot.empty() && !absolute) return Bad(StrCat("workdir '", shown, "' is not absolute"));
  if (!spec.snapshot.empty() && (absolute || ClimbsOut(spec.workdir))) {
    return Bad(StrCat("workdir '", shown, "' is not inside the captured folder"));
  }
  return {};
}

Result<void> CheckLinks(const JobSpec& spec) {
  if (spec.after.size() > kMaxRequestItems)
    return Bad(StrCat("waits for ", spec.after.size(), " jobs, at most ", kMaxRequestItems, " are possible"));
  for (const Dependency& dependency : spec.after) {
    if (!IsJobId(dependency.job_id)) return Bad(StrCat("'", ToUtf8(dependency.job_id), "' is no job id"));
    if (dependency.job_id == spec.id) return Bad(StrCat("job '", spec.id, "' cannot wait for itself"));
  }
  for (const std::string& link : {spec.replaces, spec.resubmit_of}) {
    if (!link.empty() && (!IsJobId(link) || link == spec.id))
      return Bad(StrCat("'", ToUtf8(link), "' is no older job's id"));
  }
  return {};
}

// Absent means default, so a journal of 100,000 jobs holds only what was asked for.
template <typename T>
void WriteUnless(JsonWriter* out, std::string_view key, const T& value, const T& standard) {
  if (value == standard) return;
  if constexpr (std::is_same_v<T, std::string>) {
    WriteBytes(out, key, value);
  } else {
    out->Field(key, value);
  }
}

void WriteStrings(JsonWriter* out, std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  out->Key(key).BeginArray();
  for (const std::string& value : values) WriteBytes(out, value);
  out->EndArray();
}

void WriteResources(JsonWriter* out, const Resources& resources) {
  const Resources standard;
  if (resources == standard) return;
  out->Key("resources").BeginObject();
  WriteUnless(out, "nodes", resources.nodes, standard.nodes);
  WriteUnless(out, "max_nodes", resources.max_nodes, standard.max_nodes);
  WriteUnless(out, "gpus", resources.gpus, standard.gpus);
  WriteUnless(out, "ranks_per_node", resources.ranks_per_node, standard.ranks_per_node);
  WriteUnless(out, "cpus", resources.cpus, standard.cpus);
  WriteUnless(out, "mem_bytes", resources.mem_bytes, standard.mem_bytes);
  WriteUnless(out, "time_seconds", resources.time_seconds, standard.time_seconds);
  WriteUnless(out, "gpu_type", resources.gpu_type, standard.gpu_type);
  out->EndObject();
}

void WriteAfter(JsonWriter* out, const std::vector<Dependency>& after) {
  if (after.empty()) return;
  out->Key("after").BeginArray();
  for (const Dependency& dependency : after) {
    out->BeginObject();
    WriteBytes(out, "job_id", dependency.job_id);
    WriteUnless(out, "any_end", dependency.any_end, false);
    out->EndObject();
  }
  out->EndArray();
}

void WritePlacement(JsonWriter* out, const Placement& placement) {
  if (placement == Placement{}) return;
  out->Key("placement").BeginObject();
  WriteStrings(out, "partitions", placement.partitions);
  WriteUnless(out, "account", placement.account, std::string());
  WriteUnless(out, "qos", placement.qos, std::string());
  WriteUnless(out, "node", placement.node, std::string());
  WriteStrings(out, "args", placement.args);
  out->EndObject();
}

void WriteSweep(JsonWriter* out, const std::vector<SweepAxis>& sweep) {
  if (sweep.empty()) return;
  out->Key("sweep").BeginArray();
  for (const SweepAxis& axis : sweep) {
    out->BeginObject();
    WriteBytes(out, "name", axis.name);
    WriteStrings(out, "values", axis.values);
    out->EndObject();
  }
  out->EndArray();
}

Result<void> ReadPlacement(const Json& object, Placement* placement) {
  FieldReader reader(object, "placement of the job spec");
  reader.Read("partitions", &placement->partitions);
  reader.Read("account", &placement->account);
  reader.Read("qos", &placement->qos);
  reader.Read("node", &placement->node);
  reader.Read("args", &placement->args);
  return reader.Check();
}

void ReadSweep(FieldReader* reader, std::vector<SweepAxis>* sweep) {
  const Json* items = reader->Array("sweep");
  if (items == nullptr) return;
  for (const Json& item : *items) {
    if (!item.is_object()) return reader->Bad("sweep", "array of objects");
    FieldReader fields(item, "sweep of the job spec");
    SweepAxis axis;
    fields.Read("name", &axis.name);
    fields.Read("values", &axis.values);
    reader->Take(fields.Check());
    sweep->push_back(std::move(axis));
  }
}

Result<void> CheckSweep(const JobSpec& spec) {
  for (const SweepAxis& axis : spec.sweep) {
    if (!IsVariableName(axis.name)) {
      return Bad(StrCat("'", ToUtf8(axis.name), "' is no name of an environment variable"));
    }
    if (axis.values.empty()) return Bad(StrCat("sweep '", axis.name, "' has no values"));
    if (std::ranges::any_of(axis.values, HasNul))
      return Bad(StrCat("a value of sweep '", axis.name, "' has a NUL byte"));
  }
  if (spec.sweep.empty() || SweepCount(spec.sweep) == spec.array.Count()) return {};
  return Bad(StrCat("the sweep has ", SweepCount(spec.sweep), " combinations, the array ",
                    CountOf(spec.array.Count(), "task")));
}

Result<void> ReadResources(const Json& object, Resources* resources) {
  FieldReader reader(object, "resources of the job spec");
  reader.Read("nodes", &resources->nodes);
  reader.Read("max_nodes", &resources->max_nodes);
  reader.Read("gpus", &resources->gpus);
  reader.Read("ranks_per_node", &resources->ranks_per_node);
  reader.Read("cpus", &resources->cpus);
  reader.Read("mem_bytes", &resources->mem_bytes);
  reader.Read("time_seconds", &resources->time_seconds);
  reader.Read("gpu_type", &resources->gpu_type);
  return reader.Check();
}

void ReadAfter(FieldReader* reader, std::vector<Dependency>* after) {
  const Json* items = reader->Array("after");
  if (items == nullptr) return;
  for (const Json& item : *items) {
    if (!item.is_object()) return reader->Bad("after", "array of objects");
    FieldReader fields(item, "after of the job spec");
    Dependency dependency;
    fields.Read("job_id", &dependency.job_id);
    fields.Read("any_end", &dependency.any_end);
    reader->Take(fields.Check());
    after->push_back(std::move(dependency));
  }
}

Result<void> ReadArray(FieldReader* reader, ArraySpec* array) {
  std::string text;
  reader->Read("array", &text);
  if (text.empty()) return {};
  OC_TRY(parsed, ParseArraySpec(text));
  *array = std::move(parsed);
  return {};
}

void ReadStrings(FieldReader* reader, JobSpec* spec) {
  reader->Read("id", &spec->id);
  reader->Read("user", &spec->user);
  reader->Read("lab", &spec->lab);
  reader->Read("cluster", &spec->cluster);
  reader->Read("name", &spec->name);
  reader->Read("command", &spec->command);
  reader->Read("workdir", &spec->workdir);
  reader->Read("source", &spec->source);
  reader->Read("snapshot", &spec->snapshot);
  reader->Read("environment", &spec->environment);
  reader->Read("env_names", &spec->env_names);
  reader->Read("replaces", &spec->replaces);
  reader->Read("resubmit_of", &spec->resubmit_of);
  reader->Read("allocation", &spec->allocation);
}

}  // namespace

Result<void> ValidateSpec(const JobSpec& spec) {
  if (!IsJobId(spec.id)) return Bad(StrCat("'", ToUtf8(spec.id), "' is no job id"));
  OC_TRY_VOID(CheckCommand(spec));
  OC_TRY_VOID(CheckNames(spec));
  OC_TRY_VOID(CheckResources(spec.resources));
  OC_TRY_VOID(CheckElastic(spec));
  OC_TRY_VOID(CheckPlace(spec));
  OC_TRY_VOID(CheckLinks(spec));
  OC_TRY_VOID(CheckMounts(spec.mounts));
  OC_TRY_VOID(CheckCount("max_restarts", spec.max_restarts, 0, kMaxCount));
  OC_TRY_VOID(CheckCount("warn_seconds", spec.warn_seconds, 0, kMaxWarnSeconds));
  OC_TRY_VOID(CheckCount("umask", spec.umask, -1, 0777));
  OC_TRY_VOID(CheckCount("nofile", spec.nofile, 0, std::numeric_limits<int64_t>::max()));
  OC_TRY_VOID(CheckCount("logs_max", spec.logs_max, -1, std::numeric_limits<int64_t>::max()));
  for (const std::string& name : spec.env_names) {
    if (!IsVariableName(name)) {
      return Bad(StrCat("'", ToUtf8(name), "' is no name of an environment variable"));
    }
  }
  if (!spec.array.empty()) OC_TRY_VOID(CheckCount("array", spec.array.Count(), 1, kMaxArrayTasks));
  return CheckSweep(spec);
}

int64_t SweepCount(const std::vector<SweepAxis>& sweep) {
  int64_t count = sweep.empty() ? 0 : 1;
  for (const SweepAxis& axis : sweep) {
    count = std::min<int64_t>(count * static_cast<int64_t>(axis.values.size()), kMaxArrayTasks + 1);
  }
  return count;
}

std::vector<std::string> SweepVariables(const std::vector<SweepAxis>& sweep, int position) {
  std::vector<std::string> variables(sweep.size());
  auto rest = static_cast<size_t>(position);
  for (size_t at = sweep.size(); at-- > 0;) {
    const SweepAxis& axis = sweep[at];
    variables[at] = StrCat(axis.name, "=", axis.values[rest % axis.values.size()]);
    rest /= axis.values.size();
  }
  return variables;
}

std::string SpecToJson(const JobSpec& spec) {
  const JobSpec standard;
  JsonWriter out;
  out.BeginObject();
  WriteUnless(&out, "id", spec.id, standard.id);
  WriteUnless(&out, "user", spec.user, standard.user);
  WriteUnless(&out, "lab", spec.lab, standard.lab);
  if (spec.owner.told()) WriteOwner(&out.Key("owner"), spec.owner);
  WriteUnless(&out, "cluster", spec.cluster, standard.cluster);
  WriteUnless(&out, "name", spec.name, standard.name);
  WriteStrings(&out, "command", spec.command);
  WriteResources(&out, spec.resources);
  WritePlacement(&out, spec.placement);
  if (!spec.array.empty()) out.Field("array", FormatArraySpec(spec.array));
  WriteSweep(&out, spec.sweep);
  WriteUnless(&out, "workdir", spec.workdir, standard.workdir);
  WriteUnless(&out, "source", spec.source, standard.source);
  WriteUnless(&out, "snapshot", spec.snapshot, standard.snapshot);
  WriteUnless(&out, "environment", spec.environment, standard.environment);
  if (!spec.store.empty()) WriteJobStore(&out.Key("store"), spec.store);
  WriteStrings(&out, "env_names", spec.env_names);
  if (!spec.mounts.empty()) {
    out.Key("mounts");
    WriteMounts(&out, spec.mounts);
  }
  WriteUnless(&out, "mounts_at", spec.mounts_at, standard.mounts_at);
  WriteAfter(&out, spec.after);
  WriteUnless(&out, "replaces", spec.replaces, standard.replaces);
  WriteUnless(&out, "resubmit_of", spec.resubmit_of, standard.resubmit_of);
  WriteUnless(&out, "allocation", spec.allocation, standard.allocation);
  WriteUnless(&out, "batch", spec.batch, standard.batch);
  WriteUnless(&out, "hold", spec.hold, standard.hold);
  WriteUnless(&out, "requeue", spec.requeue, standard.requeue);
  WriteUnless(&out, "requeue_on_timeout", spec.requeue_on_timeout, standard.requeue_on_timeout);
  WriteUnless(&out, "warn_seconds", spec.warn_seconds, standard.warn_seconds);
  WriteUnless(&out, "warn_shell", spec.warn_shell, standard.warn_shell);
  WriteUnless(&out, "cpus_asked", spec.cpus_asked, standard.cpus_asked);
  WriteUnless(&out, "max_restarts", spec.max_restarts, standard.max_restarts);
  WriteUnless(&out, "priority", spec.priority, standard.priority);
  WriteUnless(&out, "umask", spec.umask, standard.umask);
  WriteUnless(&out, "nofile", spec.nofile, standard.nofile);
  WriteUnless(&out, "logs_max", spec.logs_max, standard.logs_max);
  WriteUnless(&out, "submitted_us", spec.submitted_us, standard.submitted_us);
  return out.EndObject().Take();
}

Result<JobSpec> SpecFromJson(std::string_view json) {
  OC_TRY(object, ParseJsonObject(json, "job spec"));
  return ReadSpec(object);
}

Result<JobSpec> ReadSpec(const Json& object) {
  if (!object.is_object()) return Fail(ErrorCode::kCorrupt, "job spec is no JSON object");
  FieldReader reader(object, "job spec");
  JobSpec spec;
  ReadStrings(&reader, &spec);
  if (const Json* resources = reader.Object("resources"))
    reader.Take(ReadResources(*resources, &spec.resources));
  reader.Take(ReadArray(&reader, &spec.array));
  if (const Json* placement = reader.Object("placement"))
    reader.Take(ReadPlacement(*placement, &spec.placement));
  if (const Json* owner = reader.Object("owner")) {
    auto read = ReadOwner(*owner);
    if (read)
      spec.owner = *std::move(read);
    else
      reader.Take(Fail(std::move(read).error()));
  }
  if (const Json* store = reader.Object("store")) {
    auto read = ReadJobStore(*store);
    reader.Take(read ? Result<void>() : Result<void>(Fail(read.error())));
    if (read) spec.store = *std::move(read);
  }
  ReadSweep(&reader, &spec.sweep);
  ReadAfter(&reader, &spec.after);
  if (const Json* mounts = reader.Array("mounts")) {
    OC_TRY(read, ReadMounts(*mounts));
    spec.mounts = std::move(read);
  }
  reader.Read("mounts_at", &spec.mounts_at);
  reader.Read("batch", &spec.batch);
  reader.Read("hold", &spec.hold);
  reader.Read("requeue", &spec.requeue);
  reader.Read("requeue_on_timeout", &spec.requeue_on_timeout);
  reader.Read("warn_seconds", &spec.warn_seconds);
  reader.Read("warn_shell", &spec.warn_shell);
  reader.Read("cpus_asked", &spec.cpus_asked);
  reader.Read("max_restarts", &spec.max_restarts);
  reader.Read("priority", &spec.priority);
  reader.Read("umask", &spec.umask);
  reader.Read("nofile", &spec.nofile);
  reader.Read("logs_max", &spec.logs_max);
  reader.Read("submitted_us", &spec.submitted_us);
  OC_TRY_VOID(reader.Check());
  return spec;
}

}  // namespace overcap
