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

// `prefix`: only lines that begin so.
GroupStory ReadStory(const std::string& path, std::string_view prefix) {
  GroupStory story;
  const auto text = PosixFiles().ReadRange(path, 0, kMostBytes);
  if (!text) return story;
  int attempt = 0;
  for (const std::string& line : Split(*text, '\n')) {
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
  return ReadStory(launch_folder + "/events.jsonl", "{");
}

GroupStory ReadJobStory(const JobRecord& record) {
  if (!record.spec.resources.elastic() || record.dir.empty()) return {};
  return ReadStory(record.dir + "/events.jsonl", kJobLine);
}

}  // namespace overcap
