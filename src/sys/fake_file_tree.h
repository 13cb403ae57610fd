// SPDX-License-Identifier: Apache-2.0
// The disk below FakeFiles: files and folders, each as the running system sees it and as a power cut would
// leave it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sys/random.h"

namespace overcap {

struct FakeNode {
  bool folder = false;

  // Files: what stands there, how much of its beginning is durable, and the content before the first
  // truncation since the last sync (which may come back).
  std::string data;
  size_t synced = 0;
  int64_t reserved = 0;  // space set aside behind the end
  struct Before {
    std::string data;
    size_t synced;
  };
  std::optional<Before> before_truncation;

  // Folders: names now, and names that are durable.
  using Entries = std::map<std::string, std::shared_ptr<FakeNode>, std::less<>>;
  Entries entries;
  Entries durable_entries;

  void Truncate(size_t size);
  void Sync();
};

class FakeFileTree {
 public:
  using NodePtr = std::shared_ptr<FakeNode>;

  // A path's folder and last name; `folder` is null when there is no such folder (`error`: ENOENT or
  // ENOTDIR).
  struct Place {
    NodePtr folder;
    std::string name;
    int error = 0;
    NodePtr Node() const;
  };
  Place Find(const std::string& path) const;
  NodePtr Node(const std::string& path) const;  // null when there is none

  // Changes of names: seen at once, durable after SyncFolder of the folder(s).
  void Set(const Place& place, NodePtr node);  // null removes
  void Move(const Place& from, const Place& to);
  void SyncFolder(const NodePtr& folder);

  void PowerCut(SeededRandom* random);

 private:
  struct Change {
    NodePtr folder;
    std::string name;
    NodePtr node;         // null: removed
    NodePtr from_folder;  // a move removes this name in the same step
    std::string from_name;
  };
  static void MakeDurable(const Change& change);

  NodePtr root_ = [] {
    auto root = std::make_shared<FakeNode>();
    root->folder = true;
    return root;
  }();
  std::vector<Change> pending_;  // oldest first
};

}  // namespace overcap
