// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/presence_record.h"
#include "snapshot/repository/upkeep.h"
#include "snapshot/repository/verify_files.h"
#include "snapshot/repository/verify_packs.h"

namespace overcap {
namespace {

constexpr size_t kFilesMost = 10'000;

void Append(std::vector<std::string>* to, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (std::find(to->begin(), to->end(), line) == to->end()) to->push_back(line);
  }
}

// Objects of writers/ and condemned/: they come and go.
Result<void> LookAtPresences(const Repository& repository, std::vector<std::string>* damage) {
  for (const std::string_view prefix : {kWritersPrefix, kCondemnedPrefix}) {
    OC_TRY(found, repository.store().ListAll(std::string(prefix)));
    for (const StoredObjectInfo& info : found) {
      const Result<std::string> bytes = repository.store().Get(info.key);
      if (!bytes && bytes.error().code == ErrorCode::kUnavailable) return Fail(bytes.error());
      if (!bytes) continue;
      const bool sound = prefix == kWritersPrefix ? DecodeWriterRecord(*bytes, info.key).has_value()
                                                  : DecodeCondemnedRecord(*bytes, info.key).has_value();
      if (!sound) damage->push_back(StrCat("object '", info.key, "' is damaged"));
    }
  }
  return {};
}

Result<RepositoryVerifyReport> VerifyOnce(const Repository& repository,
                                          const RepositoryVerifyOptions& options) {
  RepositoryVerifyReport report;
  OC_TRY(config, repository.CheckConfig(false));
  Append(&report.damage, config);
  OC_TRY_VOID(LookAtPresences(repository, &report.damage));
  std::vector<std::string> broken;
  OC_TRY(snapshots, repository.Snapshots(options.workspace, &broken));
  Append(&report.damage, broken);
  ChunkIndex::LoadReport loaded;
  OC_TRY(index, ChunkIndex::Load(repository, &loaded));
  Append(&report.damage, loaded.damage);
  OC_TRY(packs, VerifyPacks(repository, index, options.read_data, options.progress));
  Append(&report.damage, packs.damage);
  report.packs = index.pack_count();
  report.chunks = index.chunk_count();
  report.snapshots = static_cast<int64_t>(snapshots.size());
  report.bytes_read = packs.bytes_read;
  const auto usable = [&](const Digest& id) { return index.Find(id).has_value() && !packs.bad.Has(id); };
  OC_TRY(sound, AllTreesSound(repository, index, snapshots, usable));
  if (sound) return report;
  OC_TRY(files, FindDamagedFiles(repository, index, snapshots, usable, kFilesMost));
  report.files = std::move(files);
  // Only now is a pack missed: an index may name some that a prune removed.
  for (const Digest& pack : loaded.missing_packs) {
    Append(&report.damage, {StrCat("pack '", PackKey(pack), "' is missing")});
  }
  return report;
}

}  // namespace

Result<RepositoryVerifyReport> VerifyRepository(const Repository& repository,
                                                const RepositoryVerifyOptions& options) {
  Result<RepositoryVerifyReport> report = VerifyOnce(repository, options);
  if (!report || report->Sound()) return report;
  // A prune may have moved things away while we looked: damage is still there at the second look.
  return VerifyOnce(repository, options);
}

}  // namespace overcap
