// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/testing/sample_repository.h"

#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_reader.h"
#include "stores/mem/mem_store.h"

namespace overcap {
namespace {

constexpr ScryptCost kCheap{.n = 16, .r = 1, .p = 1};

Result<FileContent> AddContent(ChunkWriter::Lane* lane, const std::string& bytes, size_t cut) {
  if (bytes.empty()) return FileContent();
  if (bytes.size() <= cut) {
    OC_TRY(added, lane->Add(ChunkKind::kData, bytes));
    return FileContent{FileContent::Kind::kChunk, added.id};
  }
  std::vector<ContentPart> parts;
  for (size_t at = 0; at < bytes.size(); at += cut) {
    const std::string_view piece = std::string_view(bytes).substr(at, cut);
    OC_TRY(added, lane->Add(ChunkKind::kData, piece));
    parts.push_back({ContentPart::Kind::kChunk, static_cast<int64_t>(piece.size()), added.id});
  }
  OC_TRY(map, WriteContentMaps(parts, [&](std::string_view meta) -> Result<Digest> {
           OC_TRY(added, lane->Add(ChunkKind::kMeta, meta));
           return added.id;
         }));
  return FileContent{FileContent::Kind::kMap, map};
}

Result<std::string> ReadContent(ChunkReader* reader, const SnapshotEntry& entry) {
  if (entry.content.kind == FileContent::Kind::kEmpty) return std::string();
  if (entry.content.kind == FileContent::Kind::kChunk) return reader->Get(entry.content.id);
  OC_TRY(parts,
         ReadContentMaps(entry.content.id, entry.size, [&](const Digest& id) { return reader->Get(id); }));
  std::string bytes;
  for (const ContentPart& part : parts) {
    OC_TRY(chunk, reader->Get(part.id));
    bytes += chunk;
  }
  return bytes;
}

}  // namespace

Repository NewRepositoryIn(std::shared_ptr<Store> store, std::string_view secret) {
  return Repository::Create({.store = std::move(store)}, secret, {}, kCheap).value();
}

Repository NewMemRepository(std::string_view secret) {
  return NewRepositoryIn(std::make_shared<MemStore>(), secret);
}

std::string NoiseBytes(uint64_t seed, size_t size) {
  SeededRandom random(seed);
  std::string bytes;
  while (bytes.size() < size) {
    const uint64_t word = random.Next();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof word);
  }
  bytes.resize(size);
  return bytes;
}

std::string TextBytes(uint64_t seed, size_t size) {
  SeededRandom random(seed);
  std::string bytes;
  while (bytes.size() < size) bytes += "line " + std::to_string(random.Below(1'000)) + " of a text\n";
  bytes.resize(size);
  return bytes;
}

Result<Digest> AddSampleTree(ChunkWriter* writer, const SampleFiles& files, size_t cut) {
  const std::unique_ptr<ChunkWriter::Lane> lane = writer->NewLane();
  TreeBuilder builder([&](std::string_view meta) -> Result<Digest> {
    OC_TRY(added, lane->Add(ChunkKind::kMeta, meta));
    return added.id;
  });
  SnapshotEntry root;
  root.type = SnapshotEntryType::kFolder;
  root.mode = 0755;
  OC_TRY_VOID(builder.Add(root));
  for (const auto& [path, bytes] : files) {
    SnapshotEntry entry;
    entry.path = path;
    entry.mode = 0644;
    entry.size = static_cast<int64_t>(bytes.size());
    OC_TRY(content, AddContent(lane.get(), bytes, cut));
    entry.content = content;
    OC_TRY_VOID(builder.Add(entry));
  }
  OC_TRY(tree, builder.Finish());
  OC_TRY_VOID(lane->Flush());
  return tree;
}

Result<NamedSnapshot> CommitSample(const Repository& repository, const SampleFiles& files,
                                   const std::string& workspace, int64_t time_us) {
  OC_TRY(writer, ChunkWriter::Start(repository));
  OC_TRY(tree, AddSampleTree(writer.get(), files));
  SnapshotRecord record;
  record.tree = tree;
  record.workspace = workspace;
  record.time_us = time_us != 0 ? time_us : repository.clock().WallUs();
  return writer->Commit(record);
}

Result<SampleFiles> ReadSampleTree(const Repository& repository, const Digest& tree) {
  OC_TRY(index, ChunkIndex::Load(repository));
  ChunkReader chunks(repository, index);
  TreeReader reader(tree, [&](const Digest& id) { return chunks.Get(id); });
  SampleFiles files;
  for (;;) {
    OC_TRY(entry, reader.Next());
    if (entry == nullptr) return files;
    if (!entry->IsFile()) continue;
    OC_TRY(bytes, ReadContent(&chunks, *entry));
    files[entry->path] = std::move(bytes);
  }
}

std::vector<std::string> KeysOf(const Store& store, const std::string& prefix) {
  std::vector<std::string> keys;
  const std::vector<StoredObjectInfo> objects = store.ListAll(prefix).value();
  for (const StoredObjectInfo& info : objects) keys.push_back(info.key);
  return keys;
}

}  // namespace overcap
