// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/allocation_text.h"

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/job_words.h"

namespace overcap::cli {

std::string AllocationLine(const AllocationState& state, int64_t now_us) {
  const std::string& name = state.allocation.name;
  if (!state.record) return StrCat(name, ": ", state.trouble, " (job '", state.allocation.job, "')");
  std::string text = StrCat(name, ": ", StateText(*state.record, now_us));
  if (!state.nodes.empty()) text += StrCat(" on ", Join(state.nodes, ", "));
  const int gpus = state.record->spec.resources.gpus;
  if (gpus > 0) text += StrCat(", ", CountOf(gpus, "GPU"));
  return StrCat(text, " (job '", state.allocation.job, "')");
}

std::string AllocationJson(const AllocationState& state, int64_t now_us) {
  JsonWriter json;
  json.BeginObject().Field("name", state.allocation.name).Field("job", state.allocation.job);
  json.Field("cluster", state.allocation.cluster);
  json.Field("state", state.record ? JobStateName(state.record->state) : JobStateName(JobState::kUnknown));
  json.Field("reason", state.record ? state.record->reason : state.trouble).Field("nodes", state.nodes);
  json.Key("ssh_host");
  state.ssh ? json.String(SshHostName(state.allocation.name)) : json.Null();
  json.Key("record");
  state.record ? json.Raw(RecordToJson(*state.record, now_us)) : json.Null();
  return json.EndObject().Take();
}

std::string InstallLine(const SshInstall& install) {
  if (!install.changed) return StrCat("'", install.file, "' includes overcap's allocations already");
  return StrCat("'", install.file, "' includes overcap's allocations now",
                install.backup.empty() ? "" : StrCat("; as it was: '", install.backup, "'"));
}

}  // namespace overcap::cli
