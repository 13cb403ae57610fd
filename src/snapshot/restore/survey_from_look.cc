// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/text.h"
#include "snapshot/restore/folder_look.h"

namespace overcap {
namespace {

// Goes through both trees side by side; `old` numbers are of the tree that the folder is.
class LookJoiner {
 public:
  LookJoiner(const FolderLook& look, const WantedTree& wanted, const SurveyRequest& request, Survey* survey)
      : old_(look.tree), seen_(look.survey), wanted_(wanted), request_(request), survey_(*survey) {
    for (const FoundLink& link : seen_.links) links_.emplace(link.entry, link);
  }

  void Run() {
    JudgeFolder(0, 0);
    for (std::vector<std::pair<uint32_t, uint32_t>> folders = {{0, 0}}; !folders.empty();) {
      const auto [entry, old] = folders.back();
      folders.pop_back();
      JoinFolder(entry, old, &folders);
    }
  }

 private:
  void JoinFolder(uint32_t folder, uint32_t old_folder, std::vector<std::pair<uint32_t, uint32_t>>* below) {
    uint32_t old = old_.First(old_folder);
    const uint32_t old_end = old_.End(old_folder);
    for (uint32_t child = wanted_.First(folder); child < wanted_.End(folder); child = wanted_.Next(child)) {
      const std::string_view name = wanted_.Name(child);
      for (; old < old_end && old_.Name(old) < name; old = old_.Next(old)) AddExtra(folder, old);
      if (old == old_end || old_.Name(old) != name) continue;  // as it was: missing, with all below it
      Judge(child, old);
      if (wanted_[child].IsFolder() && old_[old].IsFolder()) below->emplace_back(child, old);
      old = old_.Next(old);
    }
    for (; old < old_end; old = old_.Next(old)) AddExtra(folder, old);
  }

  void Judge(uint32_t entry, uint32_t old) {
    const WantedEntry& wanted = wanted_[entry];
    const WantedEntry& there = old_[old];
    survey_.stamps[entry] = seen_.stamps[old];
    if (wanted.IsFolder() && there.IsFolder()) return JudgeFolder(entry, old);
    if (wanted.IsFolder() || there.IsFolder() || wanted.IsSymlink() != there.IsSymlink()) {
      survey_.states[entry] = EntryState::kReplace;
      if (there.IsFolder()) survey_.blocked.push_back(entry);
      return;
    }
    const bool same_content =
        wanted.IsSymlink() ? wanted_.Target(entry) == old_.Target(old) : SameBytes(entry, old);
    survey_.states[entry] = !same_content                ? EntryState::kReplace
                            : SameAttributes(entry, old) ? EntryState::kSame
                                                         : EntryState::kAttributes;
    if (!wanted.IsSymlink()) NoteLink(entry, old);
  }

  void JudgeFolder(uint32_t entry, uint32_t old) {
    survey_.stamps[entry] = seen_.stamps[old];
    survey_.states[entry] = SameAttributes(entry, old) ? EntryState::kSame : EntryState::kAttributes;
    survey_.known_names[entry] = seen_.known_names[old];
  }

  bool SameBytes(uint32_t entry, uint32_t old) const {
    const WantedEntry& there = old_[FileOf(old)];
    return wanted_[entry].Content() == there.Content() && wanted_[entry].size == there.size;
  }

  // Attributes by what the folder has: the comparison does not care for times and owners.
  bool SameAttributes(uint32_t entry, uint32_t old) const {
    return AttributesMatch(wanted_[entry], seen_.stamps[old], request_.match) &&
           wanted_.Xattrs(entry) == old_.Xattrs(FileOf(old));
  }

  // The file that a hard link is; any other entry itself.
  uint32_t FileOf(uint32_t old) const { return old_[old].IsHardLink() ? old_[old].link : old; }

  void NoteLink(uint32_t entry, uint32_t old) {
    const WantedEntry& wanted = wanted_[entry];
    const auto known = links_.find(old);
    if (wanted.IsHardLink()) survey_.states[entry] = EntryState::kReplace;  // until its file is known
    if (known != links_.end()) {
      survey_.links.push_back({entry, known->second.device, known->second.inode, known->second.names});
    } else if (wanted.IsHardLink() || wanted.has_links) {
      survey_.links.push_back({entry, seen_.device, seen_.stamps[old].inode, 1});
    }
  }

  void AddExtra(uint32_t folder, uint32_t old) {
    if (!request_.list_names || Excluded(old)) {
      survey_.known_names[folder] = false;
    } else {
      survey_.extras.push_back({folder, old_.Name(old), old_[old].IsFolder()});
    }
  }

  bool Excluded(uint32_t old) const {
    if (request_.exclude == nullptr || request_.exclude->Empty()) return false;
    return request_.exclude->Match(old_.Path(old), old_[old].IsFolder()) == IgnoreVerdict::kIgnored;
  }

  const WantedTree& old_;
  const Survey& seen_;
  const WantedTree& wanted_;
  const SurveyRequest& request_;
  Survey& survey_;
  std::unordered_map<uint32_t, FoundLink> links_;
};

}  // namespace

bool CanSurveyFrom(const FolderLook& look) {
  return !look.next_survey && look.report.Same() && look.survey.failures.empty() &&
         std::none_of(look.survey.foreign.begin(), look.survey.foreign.end(),
                      [](uint8_t is) { return is != 0; });
}

Survey SurveyFromLook(const FolderLook& look, const WantedTree& wanted, const SurveyRequest& request) {
  Survey survey = EmptySurvey(wanted.size());
  survey.device = look.survey.device;
  LookJoiner(look, wanted, request, &survey).Run();
  const auto by_entry = [](const auto& a, const auto& b) { return a.entry < b.entry; };
  std::sort(survey.links.begin(), survey.links.end(), by_entry);
  std::sort(survey.blocked.begin(), survey.blocked.end());
  return survey;
}

}  // namespace overcap
