// SPDX-License-Identifier: Apache-2.0
#include "sys/fake_files.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace overcap {
namespace {

using NodePtr = FakeFileTree::NodePtr;

tl::unexpected<Error> Errno(int error_number, std::string_view what, const std::string& path) {
  return Fail(ErrnoError(error_number, StrCat("cannot ", what, " '", path, "'")));
}

}  // namespace

class FakeAppendFile : public AppendFile {
 public:
  FakeAppendFile(FakeFiles* files, NodePtr node, std::string path)
      : files_(files), node_(std::move(node)), path_(std::move(path)), epoch_(files->epoch_) {}

  Result<void> Append(std::string_view data) override {
    if (const int error = Change(); error != 0) return Errno(error, "append to", path_);
    int64_t granted = 0;
    const auto size = static_cast<int64_t>(data.size());
    const int64_t kept = std::min(size, node_->reserved);
    node_->reserved -= kept;
    const int error = files_->TakeSpace(size - kept, &granted);
    granted += kept;
    node_->data.append(data.substr(0, static_cast<size_t>(granted)));
    if (error != 0) return Errno(error, "append to", path_);
    return {};
  }

  Result<void> Sync() override {
    int error = Change();
    if (error == 0) error = files_->TakeSync();
    if (error != 0) return Errno(error, "sync", path_);
    node_->Sync();
    return {};
  }

  Result<void> TruncateTo(int64_t size) override {
    if (const int error = Change(); error != 0) return Errno(error, "truncate", path_);
    if (files_->free_bytes_) *files_->free_bytes_ += node_->reserved;
    node_->reserved = 0;
    node_->Truncate(static_cast<size_t>(size));
    return {};
  }

  int64_t Size() const override { return static_cast<int64_t>(node_->data.size()); }

  Result<bool> Reserve(int64_t bytes) override {
    if (const int error = Change(); error != 0) return Errno(error, "reserve space for", path_);
    if (!files_->can_reserve_) return false;
    const int64_t more = std::max<int64_t>(0, bytes - node_->reserved);
    if (files_->free_bytes_ && *files_->free_bytes_ < more) return Errno(ENOSPC, "reserve space for", path_);
    if (files_->free_bytes_) *files_->free_bytes_ -= more;
    node_->reserved += more;
    return true;
  }

 private:
  // A program that crashed writes no more: EBADF finds handles that were kept over a crash.
  int Change() { return epoch_ == files_->epoch_ ? files_->CountChange() : EBADF; }

  FakeFiles* files_;
  NodePtr node_;
  std::string path_;
  int64_t epoch_;
};

void FakeFiles::Crash(CrashKind kind) {
  ++epoch_;
  changes_left_.reset();
  if (kind == CrashKind::kPowerCut) tree_.PowerCut(&random_);
}

int FakeFiles::CountChange() {
  if (Dead()) return EIO;
  if (changes_left_) --*changes_left_;
  ++changes_;
  return 0;
}

int FakeFiles::TakeSpace(int64_t bytes, int64_t* granted) {
  *granted = bytes;
  if (failing_writes_ > 0) {
    --failing_writes_;
    *granted = bytes == 0 ? 0 : static_cast<int64_t>(random_.Below(static_cast<uint64_t>(bytes)));
  } else if (free_bytes_) {
    *granted = std::min(bytes, *free_bytes_);
    *free_bytes_ -= *granted;
    if (*granted == bytes) return 0;
  } else {
    return 0;
  }
  return ENOSPC;
}

int FakeFiles::TakeSync() {
  if (failing_syncs_ <= 0) return 0;
  --failing_syncs_;
  return EIO;
}

Result<NodePtr> FakeFiles::NewFile(const std::string& path, std::string_view data) {
  if (const int error = CountChange(); error != 0) return Errno(error, "write", path);
  int64_t granted = 0;
  if (const int error = TakeSpace(static_cast<int64_t>(data.size()), &granted); error != 0) {
    if (free_bytes_) *free_bytes_ += granted;  // the temporary file is removed again
    return Errno(error, "write", path);
  }
  auto node = std::make_shared<FakeNode>();
  node->data = data;
  return node;
}

Result<std::string> FakeFiles::Read(const std::string& path) const {
  return ReadRange(path, 0, INT64_MAX);
}

Result<std::string> FakeFiles::ReadRange(const std::string& path, int64_t offset, int64_t limit) const {
  if (offset < 0 || limit < 0) return Errno(EINVAL, "read", path);
  const FakeFileTree::Place place = tree_.Find(path);
  const NodePtr node = place.Node();
  if (!node) return Errno(place.error != 0 ? place.error : ENOENT, "read", path);
  if (node->folder) return Errno(EISDIR, "read", path);
  if (static_cast<size_t>(offset) >= node->data.size()) return std::string();
  return node->data.substr(static_cast<size_t>(offset), static_cast<size_t>(limit));
}

Result<std::unique_ptr<AppendFile>> FakeFiles::OpenAppend(const std::string& path) {
  const FakeFileTree::Place place = tree_.Find(path);
  if (!place.folder) return Errno(place.error, "open", path);
  NodePtr node = place.Node();
  if (node && node->folder) return Errno(EISDIR, "open", path);
  if (Dead()) return Errno(EIO, "open", path);
  if (!node) {
    OC_TRY(made, NewFile(path, ""));
    tree_.Set(place, node = made);
  }
  return std::unique_ptr<AppendFile>(new FakeAppendFile(this, std::move(node), path));
}

Result<void> FakeFiles::WriteAtomic(const std::string& path, std::string_view data, bool durable) {
  const FakeFileTree::Place place = tree_.Find(path);
  if (!place.folder) return Errno(place.error, "write", path);
  if (const NodePtr old = place.Node(); old && old->folder) return Errno(EISDIR, "write", path);
  OC_TRY(node, NewFile(path, data));
  if (durable) {
    if (const int error = TakeSync(); error != 0) return Errno(error, "write", path);
    node->Sync();
  }
  tree_.Set(place, node);
  if (durable) tree_.SyncFolder(place.folder);
  return {};
}

Result<void> FakeFiles::CreateExclusive(const std::string& path, std::string_view data) {
  const FakeFileTree::Place place = tree_.Find(path);
  if (!place.folder) return Errno(place.error, "create", path);
  if (place.Node()) return Errno(EEXIST, "create", path);
  OC_TRY(node, NewFile(path, data));
  tree_.Set(place, node);
  return {};
}

Result<void> FakeFiles::MakeFolders(const std::string& path) {
  std::string prefix;
  for (const std::string& part : Split(path, '/')) {
    if (part.empty()) continue;
    prefix += "/" + part;
    const FakeFileTree::Place place = tree_.Find(prefix);
    if (const NodePtr node = place.Node()) {
      if (!node->folder) return Errno(ENOTDIR, "make folder", path);
      continue;
    }
    if (const int error = CountChange(); error != 0) return Errno(error, "make folder", path);
    auto folder = std::make_shared<FakeNode>();
    folder->folder = true;
    tree_.Set(place, std::move(folder));
  }
  return {};
}

Result<void> FakeFiles::Rename(const std::string& from, const std::string& to) {
  const FakeFileTree::Place source = tree_.Find(from);
  const FakeFileTree::Place target = tree_.Find(to);
  const NodePtr node = source.Node();
  const NodePtr old = target.Node();
  int error = 0;
  if (!node || !target.folder) {
    error = std::max({source.error, target.error, ENOENT});
  } else if (to.starts_with(from + "/")) {
    error = EINVAL;
  } else if (old && old->folder != node->folder) {
    error = old->folder ? EISDIR : ENOTDIR;
  } else if (old && old != node && !old->entries.empty()) {
    error = ENOTEMPTY;
  } else {
    error = CountChange();
  }
  if (error != 0) return Fail(ErrnoError(error, StrCat("cannot rename '", from, "' to '", to, "'")));
  if (old != node) tree_.Move(source, target);
  return {};
}

Result<void> FakeFiles::SyncFolder(const std::string& path) {
  const NodePtr node = tree_.Node(path);
  int error = !node ? ENOENT : !node->folder ? ENOTDIR : CountChange();
  if (error == 0) error = TakeSync();
  if (error != 0) return Errno(error, "sync folder", path);
  tree_.SyncFolder(node);
  return {};
}

Result<void> FakeFiles::Remove(const std::string& path) {
  const FakeFileTree::Place place = tree_.Find(path);
  const NodePtr node = place.Node();
  if (!node) return {};
  if (node->folder) return Errno(EISDIR, "remove", path);
  if (const int error = CountChange(); error != 0) return Errno(error, "remove", path);
  tree_.Set(place, nullptr);
  return {};
}

Result<void> FakeFiles::RemoveTree(const std::string& path) {
  const NodePtr node = tree_.Node(path);
  if (!node) return {};
  // One change per name, leaves first, as the real one does it: a crash may come in between.
  const FakeNode::Entries children = node->entries;
  for (const auto& [name, child] : children) OC_TRY_VOID(RemoveTree(path + "/" + name));
  if (const int error = CountChange(); error != 0) return Errno(error, "remove", path);
  tree_.Set(tree_.Find(path), nullptr);
  return {};
}

bool FakeFiles::Exists(const std::string& path) const {
  return tree_.Node(path) != nullptr;
}

Result<std::vector<std::string>> FakeFiles::List(const std::string& path) const {
  const NodePtr node = tree_.Node(path);
  if (!node || !node->folder) return Errno(node ? ENOTDIR : ENOENT, "list", path);
  std::vector<std::string> names;
  for (const auto& [name, child] : node->entries) names.push_back(name);
  return names;
}

}  // namespace overcap
