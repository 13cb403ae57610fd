// SPDX-License-Identifier: Apache-2.0
#include "control/usage.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/json_writer.h"
#include "base/text.h"
#include "base/units.h"
#include "control/picture_json.h"
#include "model/picture_fit.h"

namespace overcap {
namespace {

int InUse(const PictureUse& use) {
  return use.gpus + use.overcap_gpus;
}

void Sort(std::vector<UsageRow>* rows) {
  std::sort(rows->begin(), rows->end(), [](const UsageRow& a, const UsageRow& b) {
    if (InUse(a.use) != InUse(b.use)) return InUse(a.use) > InUse(b.use);
    if (a.use.waiting_gpus != b.use.waiting_gpus) return a.use.waiting_gpus > b.use.waiting_gpus;
    return a.name < b.name;
  });
}

bool Counts(const ClusterPicture& picture, const PictureJob& job, std::string_view lab) {
  return lab.empty() || LabIsWithin(picture, job.lab, lab);
}

// Labs that the cluster knows, and those that jobs name.
std::vector<UsageRow> LabRows(const ClusterPicture& picture, std::string_view only) {
  std::set<std::string, std::less<>> names;
  for (const PictureJob& job : picture.jobs) {
    if (!job.lab.empty()) names.insert(job.lab);
  }
  for (const PictureLab& lab : picture.labs) {
    if (lab.gpu_cap || lab.cpu_cap || lab.name == only) names.insert(lab.name);
  }
  std::vector<UsageRow> rows;
  for (const std::string& name : names) {
    if (!only.empty() && !LabIsWithin(picture, name, only)) continue;
    const PictureLab* lab = FindLab(picture, name);
    UsageRow row{name, LabUse(picture, name), {}, {}};
    if (lab != nullptr) row.gpu_cap = lab->gpu_cap, row.cpu_cap = lab->cpu_cap;
    rows.push_back(std::move(row));
  }
  Sort(&rows);
  return rows;
}

std::vector<UsageRow> UserRows(const ClusterPicture& picture, std::string_view lab) {
  std::map<std::string, PictureUse> users;
  for (const PictureJob& job : picture.jobs) {
    if (Counts(picture, job, lab)) AddUse(job, &users[job.user]);
  }
  std::vector<UsageRow> rows;
  for (auto& [name, use] : users) rows.push_back({name, std::move(use), {}, {}});
  Sort(&rows);
  return rows;
}

void CountJob(const PictureJob& job, std::map<std::string, UsageType>* types) {
  int typed = 0;
  const auto count = [&](const std::string& type, int gpus) {
    UsageType& kind = (*types)[type];
    if (!HoldsNodes(job)) {
      kind.waiting += gpus * job.tasks;
      return;
    }
    kind.used += gpus;
    if (job.overcap) kind.overcap += gpus;
  };
  for (const TypedGpus& gpus : job.gpu_types) {
    count(gpus.type, gpus.count);
    typed += gpus.count;
  }
  if (typed < job.gpus) count("", job.gpus - typed);
}

// What is in use is told by the nodes, as what is free: the queue may be of another moment. A lab's share is
// told by the queue alone.
std::vector<UsageType> TypeRows(const ClusterPicture& picture, std::string_view lab) {
  std::map<std::string, UsageType> types;
  for (const PictureJob& job : picture.jobs) {
    if (Counts(picture, job, lab)) CountJob(job, &types);
  }
  std::map<std::string, int> held;
  for (const PictureNode& node : picture.nodes) {
    for (const TypedGpus& gpus : node.gpus) {
      UsageType& kind = types[gpus.type];
      const int used = std::min(gpus.count, GpuCountOf(node.gpus_used, gpus.type));
      held[gpus.type] += used;
      kind.total += gpus.count;
      (node.usable ? kind.free : kind.away) += gpus.count - used;
    }
  }
  std::vector<UsageType> rows;
  for (auto& [type, kind] : types) {
    kind.type = type;
    if (!picture.nodes.empty()) {
      kind.used = lab.empty() ? held[type] : std::min(kind.used, held[type]);
      kind.overcap = std::min(kind.overcap, kind.used);
    }
    if (kind.total > 0 || kind.used > 0 || kind.waiting > 0) rows.push_back(kind);
  }
  return rows;
}

void WriteUse(const PictureUse& use, JsonWriter* json) {
  json->Field("jobs", use.jobs).Field("gpus", use.gpus).Field("cpus", use.cpus);
  json->Field("overcap_jobs", use.overcap_jobs).Field("overcap_gpus", use.overcap_gpus);
  json->Field("overcap_cpus", use.overcap_cpus);
  json->Field("waiting_jobs", use.waiting_jobs).Field("waiting_gpus", use.waiting_gpus);
  json->Field("waiting_cpus", use.waiting_cpus);
  json->Field("capped_jobs", use.capped_jobs).Field("capped_gpus", use.capped_gpus);
  json->Key("types").BeginObject();
  for (const auto& [type, count] : use.types) json->Field(type, count);
  json->EndObject();
}

void WriteRows(std::string_view key, const std::vector<UsageRow>& rows, bool caps, JsonWriter* json) {
  json->Key(key).BeginArray();
  for (const UsageRow& row : rows) {
    json->BeginObject().Field("name", row.name);
    if (caps) {
      row.gpu_cap ? json->Field("gpu_cap", *row.gpu_cap) : json->Key("gpu_cap").Null();
      row.cpu_cap ? json->Field("cpu_cap", *row.cpu_cap) : json->Key("cpu_cap").Null();
    }
    WriteUse(row.use, json);
    json->EndObject();
  }
  json->EndArray();
}

}  // namespace

Result<UsageReport> MakeUsage(const ClusterPicture& picture, std::string_view lab) {
  UsageReport report;
  report.lab = lab;
  report.labs = LabRows(picture, lab);
  if (!lab.empty() && FindLab(picture, lab) == nullptr && report.labs.empty()) {
    std::vector<std::string> names;
    for (const PictureLab& known : picture.labs) names.push_back(known.name);
    const std::string nearest = Nearest(lab, names);
    return Fail(ErrorCode::kNotFound, StrCat("there is no lab '", lab, "'"),
                !nearest.empty() ? StrCat("did you mean '", nearest, "'?")
                : names.empty()  ? "this cluster keeps no accounts"
                                 : StrCat("labs are: ", Join(names, ", ")));
  }
  report.users = UserRows(picture, lab);
  report.types = TypeRows(picture, lab);
  report.total = UseOf(picture, [&](const PictureJob& job) { return Counts(picture, job, lab); });
  const GpuRoom room = GpuRoomOf(picture, "", "");
  report.gpus = room.total, report.gpus_free = room.free, report.gpus_away = room.away;
  report.gpus_used = room.total - room.free - room.away;
  for (const PictureNode& node : picture.nodes) report.cpus += node.cpus;
  return report;
}

std::string UsageToJson(const UsageReport& report, const ClusterPicture& picture, int64_t now_us) {
  JsonWriter json;
  json.BeginObject();
  WritePictureAge(picture, now_us, &json);
  if (!report.lab.empty()) json.Field("lab", report.lab);
  json.Field("gpus_total", report.gpus)
      .Field("gpus_used", report.gpus_used)
      .Field("gpus_free", report.gpus_free)
      .Field("gpus_away", report.gpus_away);
  json.Field("cpus_total", report.cpus);
  json.Key("total").BeginObject();
  WriteUse(report.total, &json);
  json.EndObject();
  WriteRows("labs", report.labs, true, &json);
  WriteRows("users", report.users, false, &json);
  json.Key("types").BeginArray();
  for (const UsageType& kind : report.types) {
    json.BeginObject().Field("type", kind.type).Field("total", kind.total).Field("used", kind.used);
    json.Field("overcap", kind.overcap).Field("free", kind.free).Field("away", kind.away);
    json.Field("waiting", kind.waiting).EndObject();
  }
  return json.EndArray().EndObject().Take();
}

}  // namespace overcap
