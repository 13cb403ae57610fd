// SPDX-License-Identifier: Apache-2.0
// Looks at the target: what of a tree is there already, and what else. Changes nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "snapshot/backup/seen.h"
#include "snapshot/ignore.h"
#include "snapshot/restore/attributes.h"
#include "snapshot/restore/file_verdict.h"
#include "snapshot/restore/folder_fds.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

enum class EntryState : uint8_t {
  kMissing,     // nothing is there
  kSame,        // is there as it should be
  kAttributes,  // the content is right; mode, times, owner or extended attributes are not
  kRead,        // only its content can tell
  kReplace,     // something else is there
  kMade,        // this restore has made it
  kFailed,      // could not be looked at or made
};

// Something that the tree does not have.
struct ExtraEntry {
  uint32_t folder = 0;
  std::string name;
  bool is_folder = false;
};

// A wanted file that is there and has further names, there or in the tree.
struct FoundLink {
  uint32_t entry = 0;
  uint64_t device = 0;
  uint64_t inode = 0;
  uint32_t names = 0;
};

struct SurveyFailure {
  uint32_t entry = 0;
  int error = 0;
};

struct SurveyRequest {
  const Seen* seen = nullptr;
  TargetKnowledge knowledge;
  AttributeMatch match;
  AttributeRules rules;
  bool list_names = false;               // find extras
  const IgnoreRules* exclude = nullptr;  // what is no extra
  std::string keep_name;
  bool may_chmod = false;  // folders that cannot be searched may be given the right to
  int threads = 1;
  const std::atomic<bool>* stop = nullptr;
  // Also find out whether the folder is still all that `seen` says (Survey::as_seen): the look ends when it
  // is not. Needs `seen`, `list_names` and `get`.
  bool since_seen = false;
  const GetMeta* get = nullptr;
};

struct Survey {
  uint64_t device = 0;               // of the target
  bool as_seen = false;              // all that the cache knows was there as it says, and nothing else
  std::vector<EntryState> states;    // per entry
  std::vector<SeenStamp> stamps;     // per entry; inode 0: not there
  std::vector<uint8_t> known_names;  // per folder: all that is in it is in the cache or was listed
  std::vector<uint8_t> foreign;      // per folder: it is on another file system than the target
  std::vector<uint8_t> plain;        // per folder: it is known to have no extended attributes, so no ACLs
  std::vector<ExtraEntry> extras;
  std::vector<FoundLink> links;
  std::vector<uint32_t> to_read;  // state kRead, in the order of the tree
  std::vector<uint32_t> blocked;  // files and links in whose place a folder is, in the order of the tree
  std::vector<SurveyFailure> failures;
};

// Of a target in which nothing is.
Survey EmptySurvey(size_t entries);
Survey SurveyTarget(const WantedTree& tree, const TargetFolder& target, const SurveyRequest& request);

}  // namespace overcap
