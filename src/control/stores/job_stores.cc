// SPDX-License-Identifier: Apache-2.0
#include "control/stores/job_stores.h"

#include "base/text.h"
#include "control/expand_folder.h"
#include "control/stores/config_stores.h"
#include "snapshot/sha256.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr char kEntry[] = "job";

}  // namespace

Result<JobStore> JobStoreOf(const StoreBook& book, const std::string& text) {
  OC_TRY(place, FindStorePlace(book, text));
  if (place.location.kind == StoreKind::kMemory)
    return Fail(ErrorCode::kUsage,
                StrCat("jobs cannot use ", Quoted(text, 200), ": it is memory of this process"));
  place.location.open_end = false;
  JobStore store{place.location.Text(), {}};
  const auto entry = book.entries.find(place.entry);
  if (place.entry.empty() || entry == book.entries.end()) return store;
  for (const StoreField& field : StoreFields(entry->second)) {
    if (field.name != "at") store.options.emplace(field.name, field.value);
  }
  return store;
}

Result<std::unique_ptr<Store>> OpenJobStore(const JobStore& store, std::string_view below,
                                            const Variables& variables, int64_t patience_us, bool answered) {
  StoreEntry entry;
  entry.at = store.at;
  for (const auto& [name, value] : store.options) OC_TRY_VOID(SetStoreField(name, value, &entry));
  StoreBook book{{{kEntry, entry}}, variables, ""};
  OC_TRY(place, FindStorePlace(book, kEntry));
  return OpenStoreAt(book, below.empty() ? place : place.Below(below),
                     {.create = true, .patience_us = patience_us, .answered = answered});
}

Result<std::unique_ptr<Store>> OpenJobStoreHere(const JobStore& store, std::string_view below) {
  return OpenJobStore(store, below, Variables::OfThisProcess(), 0, true);
}

Result<std::string> ExpandFolderHere(const std::string& folder) {
  return ExpandFolder(folder, Variables::OfThisProcess());
}

Result<SnapshotStore> OpenCodeStoreOf(const JobStore& store, const std::string& root, const Clock& clock) {
  const std::string local = StrCat(root, "/remote/", Sha256Of(JobStoreToJson(store)).Hex().substr(0, 16));
  OC_TRY_VOID(PosixFiles().MakeFolders(local));
  OC_TRY(objects, OpenJobStore(store, "store", Variables::OfThisProcess()));
  return SnapshotStore::Open(local, {.clock = &clock, .objects = std::shared_ptr<Store>(std::move(objects))});
}

}  // namespace overcap
