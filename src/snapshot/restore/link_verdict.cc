// SPDX-License-Identifier: Apache-2.0
#include "snapshot/restore/link_verdict.h"

#include <map>
#include <unordered_map>
#include <utility>

namespace overcap {
namespace {

using FileKey = std::pair<uint64_t, uint64_t>;  // device, inode

bool Stays(EntryState state) {
  return state == EntryState::kSame || state == EntryState::kAttributes;
}

}  // namespace

void JudgeLinks(const WantedTree& tree, Survey* survey) {
  std::map<FileKey, uint32_t> owners;           // the wanted file that each file found stays as
  std::unordered_map<uint32_t, FileKey> found;  // by wanted file
  std::unordered_map<uint32_t, uint32_t>
      names;  // of wanted files with hard links: how many there are rightly
  for (const FoundLink& link : survey->links) {
    EntryState& state = survey->states[link.entry];
    const FileKey key{link.device, link.inode};
    if (!tree[link.entry].IsFile() || !Stays(state)) continue;
    if (!owners.emplace(key, link.entry).second) {
      state = EntryState::kReplace;
    } else {
      found[link.entry] = key;
      names[link.entry] = 1;
    }
  }
  for (const FoundLink& link : survey->links) {
    if (!tree[link.entry].IsHardLink()) continue;
    const uint32_t file = tree[link.entry].link;
    const auto key = found.find(file);
    if (key == found.end() || key->second != FileKey{link.device, link.inode}) continue;
    survey->states[link.entry] = EntryState::kSame;
    ++names[file];
  }
  for (const FoundLink& link : survey->links) {
    EntryState& state = survey->states[link.entry];
    if (tree[link.entry].IsFile() && state == EntryState::kAttributes && link.names > names[link.entry]) {
      state = EntryState::kReplace;
    }
  }
  for (const FoundLink& link : survey->links) {
    if (!tree[link.entry].IsHardLink() || survey->states[link.entry] != EntryState::kSame) continue;
    if (!Stays(survey->states[tree[link.entry].link])) survey->states[link.entry] = EntryState::kReplace;
  }
}

}  // namespace overcap
