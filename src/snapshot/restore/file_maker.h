// SPDX-License-Identifier: Apache-2.0
// Makes single files of a restore.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "snapshot/restore/attributes.h"
#include "snapshot/restore/change_guard.h"
#include "snapshot/restore/folder_fds.h"
#include "snapshot/restore/restore_ledger.h"
#include "snapshot/restore/staging_folder.h"
#include "snapshot/restore/survey.h"
#include "snapshot/restore/undertaker.h"
#include "snapshot/restore/wanted_tree.h"
#include "sys/fd.h"

namespace overcap {

// What all parts of one restore share. Each entry is worked on by one thread at a time.
struct RestoreScene {
  const WantedTree& tree;
  const TargetFolder& target;
  const AttributeRules rules;
  StagingFolder& staging;
  Undertaker& undertaker;
  RestoreLedger& ledger;
  Survey& survey;
  ChangeGuard& guard;
  std::vector<uint8_t> hands_down;  // per folder: what is made in it inherits ACLs or its group
  std::vector<uint8_t> touched;     // per folder: something in it was made, replaced or removed
  int threads = 1;
};

// A file that is being made. What is staged is nothing to anybody until it is finished.
struct NewFile {
  uint32_t entry = kNoEntry;
  Fd fd;
  bool staged = false;
  std::string staged_name;
  SeenStamp closed;  // what it was when Close closed it
};

// One per thread.
class FileMaker {
 public:
  explicit FileMaker(RestoreScene* scene) : scene_(*scene), fds_(scene->tree, scene->target.fd.Get()) {}

  // All return 0 or errno. Begin: where nothing is, under its own name; else staged.
  int Begin(uint32_t entry, NewFile* file);
  // Closes it for a while, and opens it again; kChangedMeanwhile when something else has its name by then.
  static void Close(NewFile* file);
  int Reopen(NewFile* file);
  // Attributes, close, and its name when it was staged. After an error it is gone.
  int Finish(NewFile* file);
  // Removes it, unless something else has its name.
  void Drop(NewFile* file);

  // All of it at once.
  void MakeWhole(uint32_t entry, std::string_view content);
  void MakeSymlink(uint32_t entry);
  void MakeHardLink(uint32_t entry);
  // Of a file or link that is there with the right content.
  void SetOnly(uint32_t entry);

  FolderFds& fds() { return fds_; }
  RestoreScene& scene() { return scene_; }

 private:
  int OpenOld(uint32_t entry);
  int StageFd(uint32_t entry);
  std::string StageName(uint32_t entry);
  void Bury(int stage_fd, const std::string& name, uint32_t entry);
  int Place(int stage_fd, const std::string& name, uint32_t entry);
  int PlaceWhereNothingIs(int stage_fd, const std::string& name, uint32_t entry);
  void Settle(uint32_t entry, int error, int64_t bytes, const char* act);

  RestoreScene& scene_;
  FolderFds fds_;
  std::optional<std::string> lane_;
};

}  // namespace overcap
