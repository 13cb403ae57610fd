// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/fanout_source.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sys/stat.h>

#include "base/text.h"
#include "control/fanout/virtual_packs.h"
#include "control/file_lock.h"
#include "snapshot/repository/chunk_index.h"
#include "snapshot/repository/chunk_reader.h"
#include "snapshot/repository/index_object.h"
#include "snapshot/repository/object_keys.h"
#include "stores/all_stores.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::chrono::minutes kLockPatience{10};
constexpr const char* kWorkspace = "fanout";
constexpr size_t kStateDigits = 16;

Result<Repository> OpenState(const std::string& folder) {
  StoreLocation location;
  location.path = folder;
  OC_TRY(files, OpenStore(location, {}, {.create = true, .durable = false}));
  OC_TRY(store, VirtualPacks::Open(std::shared_ptr<Store>(std::move(files)), nullptr));
  const Repository::Parts parts{.store = std::move(store), .plain_blocks = true};
  Result<Repository> opened = Repository::Open(parts);
  if (opened || opened.error().code != ErrorCode::kNotFound) return opened;
  return Repository::Create(parts);
}

// All of it can be made again: what is damaged, or of a newer version, is begun anew.
Result<BackupReport> Save(const SourceRequest& request, const std::string& state,
                          std::optional<Repository>* repository) {
  BackupRequest backup;
  backup.folder = request.folder;
  backup.workspace = kWorkspace;
  backup.host = request.host;
  backup.user = request.user;
  backup.seen_file = state + "/seen";
  backup.exclude = {"/.overcap/"};
  backup.progress = request.progress;
  backup.stop = request.stop;
  for (bool again = false;; again = true) {
    Result<BackupReport> report = [&]() -> Result<BackupReport> {
      OC_TRY(opened, OpenState(state + "/repository"));
      repository->emplace(std::move(opened));
      return Backup(**repository, backup);
    }();
    const bool stopped = request.stop != nullptr && *request.stop;
    if (report || again || stopped || report.error().code == ErrorCode::kNotFound ||
        report.error().code == ErrorCode::kDenied || report.error().code == ErrorCode::kUnavailable)
      return report;
    repository->reset();
    OC_TRY_VOID(PosixFiles().RemoveTree(state + "/repository"));
    OC_TRY_VOID(PosixFiles().Remove(state + "/seen"));
  }
}

// Packs as a node gets them: the chunks of the tree, in the order in which the files have them, and no
// others.
class PackList {
 public:
  PackList(const ChunkIndex& index, Random* random) : index_(index), random_(*random) {}

  Result<void> Add(const Digest& id) {
    const std::optional<ChunkPlace> place = index_.Find(id);
    if (!place) return Fail(ErrorCode::kCorrupt, StrCat("chunk '", id.Hex(), "' is in no pack"));
    const BlockPlace& block = index_.pack(place->pack).blocks[place->block];
    blocks_.push_back({BlockCodec::kStored, place->size, place->size, block.check, {{id, place->size}}});
    bytes_ += place->size;
    if (bytes_ >= kPackTarget) Close();
    return {};
  }
  std::vector<IndexedPack> Take() {
    Close();
    return std::move(packs_);
  }

 private:
  void Close() {
    if (blocks_.empty()) return;
    IndexedPack pack;
    for (size_t at = 0; at < pack.id.bytes.size(); at += 8) {
      const uint64_t bits = random_.Next();
      std::memcpy(pack.id.bytes.data() + at, &bits, sizeof bits);
    }
    pack.footer = EncodePackFooter(blocks_);
    pack.stored_footer_size = static_cast<int64_t>(pack.footer.size());
    pack.size = static_cast<int64_t>(kPackHeadSize + kPackTailSize) + pack.stored_footer_size + bytes_;
    packs_.push_back(std::move(pack));
    blocks_.clear();
    bytes_ = 0;
  }

  const ChunkIndex& index_;
  Random& random_;
  std::vector<PackedBlock> blocks_;
  int64_t bytes_ = 0;
  std::vector<IndexedPack> packs_;
};

// In the order of files and offsets.
std::vector<Digest> InOrder(const FolderChunks& chunks) {
  std::vector<std::pair<FolderChunks::Spot, Digest>> all;
  for (const auto& [id, spot] : chunks.spots()) all.push_back({spot, id});
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.first.file != b.first.file ? a.first.file < b.first.file : a.first.offset < b.first.offset;
  });
  std::vector<Digest> ids;
  for (const auto& [spot, id] : all) ids.push_back(id);
  return ids;
}

Result<void> Describe(const Repository& repository, const std::string& folder, FanoutSource* source) {
  OC_TRY(index, ChunkIndex::Load(repository));
  ChunkReader reader(repository, index);
  std::vector<bool> meta_packs(index.pack_count());
  const GetMeta get = [&](const Digest& id) {
    if (const auto place = index.Find(id)) meta_packs[place->pack] = true;
    return reader.Get(id);
  };
  OC_TRY(tree, WantedTree::Load(source->tree, {{}, ".overcap", false}, get));
  OC_TRY(chunks, FolderChunks::Of(tree, get, folder));
  OC_TRY_VOID(chunks.OpenFolder());
  PackList packs(index, &repository.random());
  for (const Digest& id : InOrder(chunks)) OC_TRY_VOID(packs.Add(id));
  PackIndex names;
  names.packs = packs.Take();
  OC_TRY(config, repository.store().Get("config"));
  source->objects.push_back({"config", std::move(config)});
  for (uint32_t pack = 0; pack < index.pack_count(); ++pack) {
    if (!meta_packs[pack]) continue;
    names.packs.push_back(IndexedPackOf(index, pack));
    const std::string key = PackKey(index.pack(pack).id);
    OC_TRY(bytes, repository.store().Get(key));
    source->objects.push_back({key, std::move(bytes)});
  }
  std::string text = EncodePackIndex(names);
  const Digest id = Sha256Of(text);
  source->objects.push_back({IndexKey(id), std::move(text)});
  source->chunks = std::move(chunks);
  return {};
}

}  // namespace

std::string FanoutStateOf(const std::string& root, const std::string& source) {
  return StrCat(root, "/fanout/", Sha256Of(source).Hex().substr(0, kStateDigits));
}

Result<FanoutSource> ReadFanoutSource(const SourceRequest& request) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(request.folder.c_str(), nullptr), &free);
  struct stat info {};
  if (!real || stat(real.get(), &info) != 0)
    return Fail(ErrnoError(errno, StrCat("cannot open ", Quoted(request.folder, 300))));
  if (!S_ISDIR(info.st_mode))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(request.folder, 300), " is not a folder"));
  const std::string state = FanoutStateOf(request.root, real.get());
  OC_TRY_VOID(PosixFiles().MakeFolders(state));
  OC_TRY(lock, LockFile(state + "/lock", kLockPatience));
  std::optional<Repository> repository;
  OC_TRY(report, Save(request, state, &repository));
  FanoutSource source;
  source.tree = report.tree;
  source.files = report.files;
  source.bytes = report.bytes;
  source.read_bytes = report.read_bytes;
  source.problems = report.problems;
  source.unread = report.unread;
  OC_TRY_VOID(Describe(*repository, request.folder, &source));
  return source;
}

}  // namespace overcap
