// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/verify_files.h"

#include <unordered_set>

#include "base/text.h"
#include "snapshot/format/tree_pages.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/live_chunks.h"

namespace overcap {
namespace {

using Usable = std::function<bool(const Digest&)>;

bool OfTheStore(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kInternal;
}

class DamageFinder {
 public:
  DamageFinder(const Repository& repository, const ChunkIndex& index, const Usable& usable, size_t most)
      : reader_(repository, index), usable_(usable), most_(most) {}

  Result<void> Look(const NamedSnapshot& snapshot) {
    TreeReader tree(snapshot.record.tree, Get());
    tree.SkipDamage([&](const TreeGap& gap) {
      if (gap.from.empty() && !gap.to) return NoteAll(snapshot, gap.error);
      if (gap.from.empty())
        return Note(snapshot, *gap.to, StrCat("what comes before it cannot be listed: ", gap.error.message));
      Note(snapshot, gap.from,
           StrCat("this and what follows it", gap.to ? StrCat(" before ", Quoted(*gap.to)) : "",
                  " cannot be listed: ", gap.error.message));
    });
    std::string last;
    for (;;) {
      Result<const SnapshotEntry*> entry = tree.Next();
      if (!entry && OfTheStore(entry.error())) return Fail(std::move(entry).error());
      if (!entry && last.empty()) {
        NoteAll(snapshot, entry.error());
        return {};
      }
      if (!entry) {
        Note(snapshot, last, StrCat("the list of files after it cannot be read: ", entry.error().message));
        return {};
      }
      if (*entry == nullptr || files_.size() >= most_) return {};
      last = (*entry)->path;
      if ((*entry)->IsFile()) OC_TRY_VOID(LookAt(snapshot, **entry));
    }
  }

  std::vector<DamagedFile> Take() { return std::move(files_); }

 private:
  GetMeta Get() {
    return [this](const Digest& id) { return reader_.Get(id); };
  }

  Result<void> LookAt(const NamedSnapshot& snapshot, const SnapshotEntry& entry) {
    if (entry.content.kind == FileContent::Kind::kEmpty) return {};
    if (entry.content.kind == FileContent::Kind::kChunk) {
      if (!usable_(entry.content.id)) Note(snapshot, entry.path, "its content is damaged or missing");
      return {};
    }
    const Result<std::vector<ContentPart>> parts = ReadContentMaps(entry.content.id, entry.size, Get());
    if (!parts && OfTheStore(parts.error())) return Fail(parts.error());
    int64_t bytes = 0;
    for (const ContentPart& part : parts ? *parts : std::vector<ContentPart>()) {
      if (part.kind == ContentPart::Kind::kChunk && !usable_(part.id)) bytes += part.length;
    }
    if (!parts) Note(snapshot, entry.path, StrCat("its map cannot be read: ", parts.error().message));
    if (bytes > 0) {
      Note(snapshot, entry.path, StrCat(bytes, " of its ", entry.size, " bytes are damaged or missing"));
    }
    return {};
  }

  void NoteAll(const NamedSnapshot& snapshot, const Error& error) {
    files_.push_back({snapshot.key.workspace, snapshot.ShortId(), "",
                      StrCat("its list of files cannot be read: ", error.message), snapshot.record.files});
  }

  void Note(const NamedSnapshot& snapshot, const std::string& path, std::string what) {
    if (!noted_.insert(StrCat(snapshot.key.workspace, '\n', path)).second) return;
    files_.push_back({snapshot.key.workspace, snapshot.ShortId(), path, std::move(what)});
  }

  ChunkReader reader_;
  const Usable& usable_;
  const size_t most_;
  std::unordered_set<std::string> noted_;
  std::vector<DamagedFile> files_;
};

}  // namespace

Result<bool> AllTreesSound(const Repository& repository, const ChunkIndex& index,
                           const std::vector<NamedSnapshot>& snapshots, const Usable& usable) {
  ChunkReader reader(repository, index);
  ChunkSet entered;
  bool sound = true;
  const TreeVisitor visitor{.enter_meta = [&](const Digest& id) { return entered.Insert(id); },
                            .on_data = [&](const Digest& id) { sound = sound && usable(id); }};
  for (const NamedSnapshot& snapshot : snapshots) {
    const Result<void> visited = VisitTree(
        snapshot.record.tree, [&](const Digest& id) { return reader.Get(id); }, visitor);
    if (!visited && OfTheStore(visited.error())) return Fail(visited.error());
    if (!visited || !sound) return false;
  }
  return true;
}

Result<std::vector<DamagedFile>> FindDamagedFiles(const Repository& repository, const ChunkIndex& index,
                                                  const std::vector<NamedSnapshot>& snapshots,
                                                  const Usable& usable, size_t most) {
  DamageFinder finder(repository, index, usable, most);
  for (auto it = snapshots.rbegin(); it != snapshots.rend(); ++it) OC_TRY_VOID(finder.Look(*it));
  return finder.Take();
}

}  // namespace overcap
