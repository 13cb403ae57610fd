// SPDX-License-Identifier: Apache-2.0
#include "daemon/recover.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/text.h"
#include "daemon/foreign_folders.h"
#include "daemon/job_table.h"
#include "daemon/journal.h"
#include "model/agent_report.h"
#include "model/job_id.h"
#include "sys/user.h"

namespace overcap {
namespace {

constexpr int kMostNames = 10'000;

std::vector<std::string> NamesIn(const Files& files, const std::string& folder) {
  return files.List(folder).value_or(std::vector<std::string>());
}

// The number between these two texts in a name like "attempt-7".
std::optional<int> NumberIn(std::string_view name, std::string_view before, std::string_view after) {
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  const auto number = ParseInt(name.substr(before.size(), name.size() - before.size() - after.size()));
  if (!number || *number < 0 || *number > 1'000'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

std::string NameOfUser(int64_t uid) {
  const auto entry = FindUser(static_cast<uid_t>(uid));
  return entry ? entry->name : std::to_string(uid);
}

bool IsOfJob(EventKind kind) {
  return kind != EventKind::kSubmitted && kind != EventKind::kMachine && kind != EventKind::kJournal &&
         kind != EventKind::kState && kind != EventKind::kRemoved;
}

}  // namespace

JobTraces::JobTraces(const Files& files, std::string root, bool system, std::map<std::string, int64_t> owners,
                     std::string boot_id)
    : files_(files), root_(std::move(root)), system_(system), boot_id_(std::move(boot_id)) {
  if (!system_) return;
  for (const std::string& user : NamesIn(files_, root_ + "/users")) {
    const auto uid = NumberIn(user, "", "");
    if (!uid) continue;
    // A folder for another user's job in this area is ignored: ids begin with the name of their user.
    const std::string id_of_user = MakeJobId(NameOfUser(*uid), 0, 0);
    const std::string prefix = id_of_user.substr(0, id_of_user.find('_') + 1);
    for (const std::string& id : NamesIn(files_, StrCat(root_, "/users/", user, "/jobs"))) {
      if (!IsJobId(id) || owners.contains(id)) continue;
      if (id.starts_with(prefix)) {
        owners_.emplace(id, *uid);
      } else {
        notes_.push_back(
            StrCat("'", root_, "/users/", user, "/jobs/", id, "' is left out: it names another user"));
      }
    }
  }
  owners_.merge(owners);
}

std::vector<std::string> JobTraces::Ids() const {
  std::vector<std::string> ids;
  if (system_) {
    for (const auto& [id, uid] : owners_) ids.push_back(id);
    return ids;
  }
  for (std::string& id : ForeignFolders(files_, root_).OwnIds()) {
    if (IsJobId(id)) ids.push_back(std::move(id));
  }
  return ids;
}

std::string JobTraces::FolderOf(const std::string& id) const {
  const auto owner = owners_.find(id);
  if (!system_ || owner == owners_.end()) return StrCat(root_, "/jobs/", id);
  return StrCat(root_, "/users/", owner->second, "/jobs/", id);
}

std::optional<JobTrace> JobTraces::Read(const std::string& id) {
  const std::string folder = FolderOf(id);
  if (!IsJobId(id) || !files_.Exists(folder)) return std::nullopt;
  JobTrace trace;
  trace.spec = ReadSpec(id, folder);
  trace.slots = ReadSlots(id, folder);
  trace.complete = !system_ && !boot_id_.empty();
  const auto claimed = [&trace](const Event& event) {
    return std::any_of(trace.slots.begin(), trace.slots.end(), [&event](const SlotTrace& slot) {
      return slot.attempt == event.attempt && slot.slot == event.slot;
    });
  };
  for (const std::string& line : Split(files_.Read(folder + "/events.jsonl").value_or(""), '\n')) {
    if (line.empty() || line.starts_with("{\"e\":\"group\"")) continue;
    auto event = EventFromJson(line);
    if (!event) continue;
    const bool spec = event->kind == EventKind::kSubmitted && event->spec.id == id && !system_;
    if (spec && !trace.spec) trace.spec = event->spec;
    if (!IsOfJob(event->kind)) continue;
    // A line alone gives a user no GPUs: a slot that was started has a claim, which is root's.
    if (system_ && event->kind == EventKind::kStarted && !claimed(*event)) continue;
    event->id = id;
    trace.events.push_back(*std::move(event));
  }
  return trace;
}

std::optional<JobSpec> JobTraces::ReadSpec(const std::string& id, const std::string& folder) {
  const auto text = files_.Read(folder + "/spec.json");
  auto spec = text ? SpecFromJson(*text) : Result<JobSpec>(Fail(text.error()));
  if (!spec || spec->id != id || !ValidateSpec(*spec)) return std::nullopt;
  if (!system_) return *std::move(spec);
  const int64_t uid = owners_.at(id);
  if (spec->user != NameOfUser(uid) || (spec->owner.told() && spec->owner.uid != uid)) {
    notes_.push_back(StrCat("'", folder, "/spec.json' is left out: it names another user"));
    return std::nullopt;
  }
  // The kernel gave the groups and limits at the submit; the user may have changed those in the file.
  const auto entry = FindUser(static_cast<uid_t>(uid));
  spec->owner = {uid, entry ? static_cast<int64_t>(entry->gid) : uid, {}, {}};
  spec->priority = std::min(spec->priority, 0);
  return *std::move(spec);
}

SlotTrace JobTraces::ReadSlot(const std::string& claim_file, const std::string& report_file, int attempt,
                              int slot) const {
  SlotTrace trace;
  trace.attempt = attempt;
  trace.slot = slot;
  const auto text = files_.Read(claim_file);
  const auto claim = text ? ClaimFromJson(*text) : Result<Claim>(Fail(text.error()));
  const bool nobody = !text || (claim && claim->by != "agent");
  trace.boot_id = nobody ? boot_id_ : claim ? claim->boot_id : "";
  if (claim) trace.host = claim->host;
  const AgentReport report = ParseAgentReport(files_.Read(report_file).value_or(""));
  trace.ended = report.end.has_value();
  trace.started_us = report.started_us;
  return trace;
}

std::vector<SlotTrace> JobTraces::ReadSlots(const std::string& id, const std::string& folder) const {
  std::set<std::pair<int, int>> names;  // attempt, slot
  const std::string claims = StrCat(root_, "/claims/", id);
  const bool owned = system_ && owners_.contains(id);
  if (owned) {
    for (const std::string& name : NamesIn(files_, claims)) {
      int attempt = 0, slot = 0, end = 0;
      const bool fits = std::sscanf(name.c_str(), "%d.%d%n", &attempt, &slot, &end) == 2;
      if (fits && end == static_cast<int>(name.size())) names.emplace(attempt, slot);
    }
  } else {
    for (const std::string& name : NamesIn(files_, folder)) {
      const auto attempt = NumberIn(name, "attempt-", "");
      if (!attempt || names.size() > kMostNames) continue;
      bool claimed = false;
      for (const std::string& file : NamesIn(files_, StrCat(folder, "/", name))) {
        const auto slot = NumberIn(file, "agent-", ".claim");
        if (slot) names.emplace(*attempt, *slot), claimed = true;
      }
      if (!claimed) names.emplace(*attempt, 0);  // its agent may be about to claim
    }
  }
  std::vector<SlotTrace> slots;
  for (const auto& [attempt, slot] : names) {
    const std::string agent = StrCat(folder, "/attempt-", attempt, "/agent-", slot);
    const std::string claim = owned ? StrCat(claims, "/", attempt, ".", slot) : agent + ".claim";
    slots.push_back(ReadSlot(claim, agent + ".jsonl", attempt, slot));
  }
  return slots;
}

namespace {

// Keeps the old journal under a new name and returns it. Never overwrites one that was kept before.
Result<std::string> KeepOld(Files& files, const std::string& path, const std::string& text, int64_t now_us) {
  for (int64_t i = 1;; ++i) {
    const std::string kept = StrCat(path, ".damaged-", now_us / 1'000'000, i == 1 ? "" : StrCat("-", i));
    if (files.Exists(kept)) continue;
    OC_TRY_VOID(files.WriteAtomic(kept, text, true));
    return kept;
  }
}

}  // namespace

Result<std::string> MendRoot(Files& files, const std::string& root, bool system, const std::string& boot_id,
                             int64_t now_us) {
  const std::string path = root + "/journal";
  auto read = files.Read(path);
  if (!read && read.error().code != ErrorCode::kNotFound) return Fail(read.error());
  OC_TRY(salvaged, SalvageJournal(read ? *read : ""));
  std::map<std::string, int64_t> owners;
  for (const auto& record : salvaged.records) {
    const Event& event = record.event;
    if (event.kind == EventKind::kSubmitted && event.spec.owner.told())
      owners.emplace(event.id, event.spec.owner.uid);
  }
  JobTraces traces(files, root, system, std::move(owners), boot_id);
  const std::vector<std::string> folders = traces.Ids();
  if (!read && folders.empty())
    return Fail(ErrorCode::kNotFound, StrCat("there is no journal '", path, "', and no job folder"));
  const auto trace_of = [&traces](const std::string& id) { return traces.Read(id); };
  MendedJournal mended = MendJournal(salvaged, folders, trace_of, now_us);
  if (!mended.changed) return std::string("the journal is not damaged; nothing was changed");
  std::string report = "there was no journal";
  if (read) {
    OC_TRY(kept, KeepOld(files, path, *read, now_us));
    report = StrCat("kept the damaged journal as '", kept, "'");
  }
  const std::string fresh = path + ".new";
  OC_TRY_VOID(Journal(files, fresh).Rewrite(mended.events));
  JobTable table;
  Journal again(files, fresh);
  OC_TRY_VOID(again.Open([&table](const Event& event) -> Result<void> {
    return event.kind == EventKind::kMachine ? Result<void>() : table.Apply(event);
  }));
  OC_TRY_VOID(files.Rename(fresh, path));
  OC_TRY_VOID(files.SyncFolder(root));
  for (const std::string& note : mended.notes) report += "\n" + note;
  for (const std::string& note : traces.notes()) report += "\n" + note;
  return StrCat(report, "\n", CountOf(static_cast<int64_t>(salvaged.bad_lines.size()), "bad line"), ", ",
                CountOf(static_cast<int64_t>(table.jobs().size()), "job"),
                " recovered; the new journal was read back and is whole");
}

}  // namespace overcap
