// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mounts_of_job.h"

#include "base/text.h"
#include "control/mounts/choose_mounter.h"
#include "control/stores/config_stores.h"

namespace overcap {
namespace {

constexpr std::string_view kNone = "none";

Error At(const MountEntry& entry, const std::string& name, Error error) {
  const std::string begin = StrCat("mount ", Quoted(name), ": ");
  if (!error.message.starts_with(begin)) error.message = begin + error.message;
  error.message = StrCat(entry.where, ": ", error.message);
  return error;
}

Result<MountSpec> Located(const std::string& name, const MountEntry& entry, const StoreBook& book) {
  OC_TRY(mount, CheckedMount(name, entry));
  OC_TRY(place, FindStorePlace(book, mount.store));
  if (place.location.kind == StoreKind::kMemory)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(mount.store, 200), " is memory, which no node can mount"));
  mount.store = place.location.Text();
  const auto found = book.entries.find(place.entry);
  if (found != book.entries.end()) {
    for (const StoreField& field : StoreFields(found->second)) {
      if (field.name != "at") mount.access[std::string(field.name)] = field.value;
    }
  }
  if (IsLinkedFolder(mount) && !(mount.mounter.empty() && mount.options.empty() && mount.cache_bytes == 0))
    return Fail(ErrorCode::kUsage, StrCat("'mounter', 'options' and 'cache' mean nothing to folder ",
                                          Quoted(mount.store, 200), ", which becomes a link"));
  OC_TRY_VOID(CheckMounter(mount, place.location.kind));
  return mount;
}

void NoteLink(const MountSpec& mount, const MountEntry& entry, std::vector<std::string>* notes) {
  if (!IsLinkedFolder(mount) || mount.mode != MountMode::kRead || !entry.mode_said) return;
  notes->push_back(StrCat("mount '", mount.name, "' is a link to '", ToUtf8(mount.store),
                          "': the job can write there as far as the folder lets it"));
}

}  // namespace

Result<JobMounts> MountsOfJob(const MountSources& sources, const StoreBook& book) {
  MountEntries entries = sources.cluster;
  entries.insert(sources.all.begin(), sources.all.end());
  for (const std::string& flag : sources.flags) {
    auto parsed = ParseMountFlag(flag);
    if (!parsed)
      return Fail(parsed.error().code, StrCat("--mount: ", parsed.error().message), parsed.error().hint);
    entries[parsed->name] = std::move(parsed->entry);
  }
  JobMounts job;
  for (const auto& [name, entry] : entries) {
    if (entry.store == kNone) continue;
    auto mount = Located(name, entry, book);
    if (!mount) return Fail(At(entry, name, std::move(mount).error()));
    NoteLink(*mount, entry, &job.notes);
    job.mounts.push_back(std::move(*mount));
    if (auto fits = CheckMounts(job.mounts); !fits) return Fail(At(entry, name, std::move(fits).error()));
  }
  return job;
}

}  // namespace overcap
