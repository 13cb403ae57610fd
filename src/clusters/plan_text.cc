// SPDX-License-Identifier: Apache-2.0
#include "clusters/plan_text.h"

#include "base/text.h"
#include "base/units.h"

namespace overcap {
namespace {

void AddLine(std::string* text, std::string_view word, std::string_view value) {
  if (value.empty()) return;
  text->append(word);
  text->append(12 - word.size(), ' ');
  text->append(value);
  text->push_back('\n');
}

std::string AfterText(const std::vector<Dependency>& after) {
  std::vector<std::string> parts;
  for (const Dependency& dependency : after) {
    parts.push_back(StrCat(dependency.job_id, dependency.any_end ? " (however it ends)" : ""));
  }
  return Join(parts, ", ");
}

// "data = s3://bucket/x (ro, cache 50.0 GiB, rclone)"
std::string MountText(const MountSpec& mount) {
  const bool link = IsLinkedFolder(mount);
  std::string text = StrCat(ToUtf8(mount.at), " = ", ToUtf8(mount.store), " (", link ? "a link, " : "",
                            MountModeName(mount.mode));
  if (mount.cache_bytes > 0) text += ", cache " + FormatBytes(mount.cache_bytes);
  if (!mount.mounter.empty()) text += ", " + mount.mounter;
  if (!mount.options.empty()) text += " " + ShellJoin(mount.options);
  return text + ")";
}

}  // namespace

std::string ResourcesText(const Resources& resources) {
  std::vector<std::string> parts;
  const std::string each = resources.elastic() ? " a node" : "";
  const int shared_by = resources.elastic() ? resources.nodes : 1;
  if (resources.elastic()) {
    parts.push_back(StrCat(resources.nodes, " to ", CountOf(resources.max_nodes, "node")));
  } else if (resources.nodes > 1) {
    parts.push_back(CountOf(resources.nodes, "node"));
  }
  std::string gpus = resources.gpus == 0 ? "no GPUs" : CountOf(resources.gpus / shared_by, "GPU") + each;
  if (!resources.gpu_type.empty()) gpus += StrCat(" of type '", resources.gpu_type, "'");
  parts.push_back(gpus);
  parts.push_back(CountOf(resources.world_size() / shared_by, "rank") + each);
  if (resources.cpus > 0) parts.push_back(CountOf(resources.cpus, "CPU"));
  if (resources.mem_bytes > 0) parts.push_back(FormatBytes(resources.mem_bytes));
  if (resources.time_seconds > 0) parts.push_back("at most " + FormatDuration(resources.time_seconds));
  return Join(parts, ", ");
}

std::string PlanText(const JobSpec& spec) {
  std::string text;
  AddLine(&text, "job", spec.id);
  AddLine(&text, "cluster", spec.cluster);
  AddLine(&text, "name", spec.name);
  AddLine(&text, "command", ShellJoin(spec.command));
  AddLine(&text, "resources", ResourcesText(spec.resources));
  if (!spec.array.empty()) {
    AddLine(&text, "array",
            StrCat(FormatArraySpec(spec.array), " (", CountOf(spec.array.Count(), "task"), ")"));
  }
  AddLine(&text, "folder", spec.source);
  AddLine(&text, "workdir", spec.workdir);
  AddLine(&text, "snapshot", spec.snapshot);
  AddLine(&text, "environment", spec.environment);
  AddLine(&text, "store", spec.store.at);
  for (const MountSpec& mount : spec.mounts) AddLine(&text, "mount", MountText(mount));
  AddLine(&text, "--env", Join(spec.env_names, " "));
  AddLine(&text, "after", AfterText(spec.after));
  AddLine(&text, "replaces", spec.replaces);
  AddLine(&text, "hold", spec.hold ? "until `overcap release`" : "");
  AddLine(&text, "requeue", spec.requeue ? "after a reboot or a lost agent" : "never");
  if (spec.priority != 0) AddLine(&text, "priority", StrCat(spec.priority));
  if (spec.max_restarts > 0)
    AddLine(&text, "restarts", StrCat("after a failure, at most ", spec.max_restarts));
  return text;
}

}  // namespace overcap
