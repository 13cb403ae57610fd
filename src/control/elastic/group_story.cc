// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/group_story.h"

#include "base/text.h"
#include "base/units.h"
#include "model/group_event.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMostBytes = 16 << 20;
constexpr std::string_view kJobLine = "{\"e\":\"group\"";

std::string TextOf(const std::string& path) {
  return PosixFiles().ReadRange(path, 0, kMostBytes).value_or("");
}

// `prefix`: only lines that begin so.
GroupStory StoryOf(const std::string& text, std::string_view prefix) {
  GroupStory story;
  int attempt = 0;
  for (const std::string& line : Split(text, '\n')) {
    if (!line.starts_with(prefix)) continue;
    const auto event = ParseGroupEvent(line);
    if (!event) continue;
    story.json.push_back(line);
    const std::string words = GroupEventWords(*event);
    if (words.empty()) continue;
    // Epochs count from 1 again in each attempt of a job.
    const bool again = attempt != 0 && event->attempt != attempt;
    attempt = event->attempt;
    story.lines.push_back(
        StrCat(FormatTimeLocal(event->time_us), "  ", again ? StrCat("attempt ", attempt, ": ") : "", words));
  }
  return story;
}

}  // namespace

GroupStory ReadGroupStory(const std::string& launch_folder) {
  return StoryOf(TextOf(launch_folder + "/events.jsonl"), "{");
}

GroupStory ReadJobStory(const JobRecord& record) {
  if (!record.spec.resources.elastic() || record.dir.empty()) return {};
  std::string text = TextOf(record.dir + "/events.jsonl");
  for (int attempt = 1; attempt <= record.attempt && !record.spec.store.empty(); ++attempt)
    text += TextOf(StrCat(record.dir, "/attempt-", attempt, "/agent-0.group.jsonl"));
  return StoryOf(text, kJobLine);
}

}  // namespace overcap
