// SPDX-License-Identifier: Apache-2.0
#include "snapshot/backup/testing/backup_rig.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_reader.h"
#include "stores/mem/mem_store.h"

namespace overcap {
namespace {

Repository MakeRepository(const std::shared_ptr<Store>& store, const Clock* clock) {
  Repository::Parts parts;
  parts.store = store;
  parts.clock = clock;
  Result<Repository> opened = Repository::Open(parts);
  return opened ? *std::move(opened) : Repository::Create(parts, {}, kSmallChunks).value();
}

std::string ContentOf(const SnapshotEntry& entry, const GetMeta& get) {
  if (entry.content.kind == FileContent::Kind::kEmpty) return "";
  if (entry.content.kind == FileContent::Kind::kChunk) return get(entry.content.id).value_or("lost");
  const Result<std::vector<ContentPart>> parts = ReadContentMaps(entry.content.id, entry.size, get);
  if (!parts) return "lost";
  std::string content;
  for (const ContentPart& part : *parts) {
    if (part.kind == ContentPart::Kind::kHole) {
      content.append(static_cast<size_t>(part.length), '\0');
    } else {
      content += get(part.id).value_or("lost");
    }
  }
  return content;
}

}  // namespace

BackupRig::BackupRig(std::shared_ptr<Store> given)
    : store(given ? std::move(given) : std::make_shared<MemStore>()),
      repository(MakeRepository(store, &clock)),
      folder_(temp / "work") {
  mkdir(folder_.c_str(), 0755);
}

BackupRequest BackupRig::Request() const {
  BackupRequest request;
  request.folder = folder_;
  request.workspace = "work";
  request.host = "host";
  request.user = "user";
  request.seen_file = SeenFile();
  request.threads = 2;
  return request;
}

BackupReport BackupRig::Backup(BackupRequest request) const {
  Result<BackupReport> report = overcap::Backup(repository, request);
  EXPECT_TRUE(report) << report.error().message;
  return report ? *std::move(report) : BackupReport();
}

std::map<std::string, SnapshotEntry> BackupRig::Tree(const Digest& tree) const {
  std::map<std::string, SnapshotEntry> entries;
  const ChunkIndex index = ChunkIndex::Load(repository).value();
  ChunkReader chunks(repository, index);
  TreeReader reader(tree, [&](const Digest& id) { return chunks.Get(id); });
  while (true) {
    const Result<const SnapshotEntry*> entry = reader.Next();
    EXPECT_TRUE(entry) << entry.error().message;
    if (!entry || *entry == nullptr) return entries;
    entries[(*entry)->path] = **entry;
  }
}

std::string BackupRig::Content(const SnapshotEntry& entry) const {
  const ChunkIndex index = ChunkIndex::Load(repository).value();
  ChunkReader chunks(repository, index);
  return ContentOf(entry, [&](const Digest& id) { return chunks.Get(id); });
}

std::map<std::string, std::string> BackupRig::Contents(const Digest& tree) const {
  std::map<std::string, std::string> contents;
  const ChunkIndex index = ChunkIndex::Load(repository).value();
  ChunkReader chunks(repository, index);
  const GetMeta get = [&](const Digest& id) { return chunks.Get(id); };
  for (const auto& [path, entry] : Tree(tree)) {
    if (path.empty()) continue;
    std::string& text = contents[path];
    if (entry.type == SnapshotEntryType::kFolder) text = "dir";
    if (entry.type == SnapshotEntryType::kSymlink) text = "link " + entry.target;
    if (entry.IsFile()) text = ((entry.mode & 0100) != 0 ? "exec " : "file ") + ContentOf(entry, get);
  }
  return contents;
}

std::map<std::string, std::string> BackupRig::OnDisk() const {
  std::map<std::string, std::string> contents = Describe(folder_);
  std::erase_if(contents, [](const auto& item) { return item.first.starts_with(".overcap"); });
  return contents;
}

}  // namespace overcap
