// SPDX-License-Identifier: Apache-2.0
#include "sys/fake_file_tree.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace overcap {
namespace {

void CutFile(FakeNode* file, SeededRandom* random) {
  if (file->before_truncation && random->Below(2) == 0) {
    file->data = std::move(file->before_truncation->data);
    file->synced = file->before_truncation->synced;
  }
  file->data.resize(file->synced + random->Below(file->data.size() - file->synced + 1));
  file->Sync();
}

// From here on the running system sees what was durable.
void CutTree(FakeNode* node, SeededRandom* random) {
  if (!node->folder) return CutFile(node, random);
  node->entries = node->durable_entries;
  for (const auto& [name, child] : node->entries) CutTree(child.get(), random);
}

}  // namespace

void FakeNode::Truncate(size_t size) {
  if (!before_truncation && size < data.size()) before_truncation = Before{data, synced};
  data.resize(size);
  synced = std::min(synced, size);
}

void FakeNode::Sync() {
  synced = data.size();
  before_truncation.reset();
}

FakeFileTree::NodePtr FakeFileTree::Place::Node() const {
  if (!folder) return nullptr;
  if (name.empty()) return folder;
  const auto found = folder->entries.find(name);
  return found == folder->entries.end() ? nullptr : found->second;
}

FakeFileTree::Place FakeFileTree::Find(const std::string& path) const {
  Place place{root_, ""};
  for (std::string& part : Split(path, '/')) {
    if (part.empty()) continue;
    const NodePtr next = place.Node();
    if (!next || !next->folder) return Place{nullptr, "", next ? ENOTDIR : ENOENT};
    place = Place{next, std::move(part)};
  }
  return place;
}

FakeFileTree::NodePtr FakeFileTree::Node(const std::string& path) const {
  return Find(path).Node();
}

void FakeFileTree::Set(const Place& place, NodePtr node) {
  if (node) {
    place.folder->entries[place.name] = node;
  } else {
    place.folder->entries.erase(place.name);
  }
  pending_.push_back(Change{place.folder, place.name, std::move(node), nullptr, ""});
}

void FakeFileTree::Move(const Place& from, const Place& to) {
  const NodePtr node = from.Node();
  from.folder->entries.erase(from.name);
  to.folder->entries[to.name] = node;
  pending_.push_back(Change{to.folder, to.name, node, from.folder, from.name});
}

void FakeFileTree::MakeDurable(const Change& change) {
  if (change.from_folder) change.from_folder->durable_entries.erase(change.from_name);
  if (change.node) {
    change.folder->durable_entries[change.name] = change.node;
  } else {
    change.folder->durable_entries.erase(change.name);
  }
}

void FakeFileTree::SyncFolder(const NodePtr& folder) {
  std::vector<Change> rest;
  for (Change& change : pending_) {
    if (change.folder == folder || change.from_folder == folder) {
      MakeDurable(change);
    } else {
      rest.push_back(std::move(change));
    }
  }
  pending_ = std::move(rest);
}

void FakeFileTree::PowerCut(SeededRandom* random) {
  for (const Change& change : pending_) {
    if (random->Below(2) == 0) MakeDurable(change);
  }
  pending_.clear();
  CutTree(root_.get(), random);
}

}  // namespace overcap
