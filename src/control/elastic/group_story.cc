// SPDX-License-Identifier: Apache-2.0
#include "control/elastic/group_story.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/units.h"
#include "model/json_fields.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMostBytes = 16 << 20;

struct Event {
  int64_t time_us = 0, epoch = 0, took_us = 0, steps_lost = -1;
  int rank = -1, group_size = 0, world_size = 0, status = 0;
  std::string event, why, message;
  std::vector<std::string> joined, left;
};

std::string Names(std::string_view what, const std::vector<std::string>& hosts) {
  return hosts.empty() ? "" : StrCat(", ", what, ": ", ToUtf8(Join(hosts, " ")));
}

std::string EpochWords(const Event& e) {
  std::string text =
      StrCat("epoch ", e.epoch, ": ", CountOf(e.world_size, "rank"), " on ", CountOf(e.group_size, "node"),
             ", formed in ", e.took_us / 1000, " ms", Names("joined", e.joined), Names("left", e.left));
  if (e.steps_lost >= 0) text += StrCat(", ", CountOf(e.steps_lost, "step"), " lost");
  return e.why.empty() ? text : StrCat(text, "; after: ", ToUtf8(e.why));
}

// "": not for people.
std::string WordsOf(const Event& e) {
  if (e.event == "epoch") return EpochWords(e);
  if (e.event == "leads") return "this node leads";
  if (e.event == "failed")
    return StrCat("rank ", e.rank, " failed", e.message.empty() ? "" : ": ", ToUtf8(e.message));
  if (e.event == "hung") return StrCat("rank ", e.rank, " hung");
  if (e.event == "cut_off") return StrCat("ranks of epoch ", e.epoch, " were killed: ", ToUtf8(e.why));
  if (e.event == "ended") return StrCat("ended with status ", e.status);
  return "";
}

}  // namespace

GroupStory ReadGroupStory(const std::string& launch_folder) {
  GroupStory story;
  const auto text = PosixFiles().ReadRange(launch_folder + "/events.jsonl", 0, kMostBytes);
  if (!text) return story;
  for (const std::string& line : Split(*text, '\n')) {
    const auto json = ParseJsonObject(line, "event");
    if (!json) continue;
    Event e;
    FieldReader reader(*json, "event");
    reader.Read("time_us", &e.time_us);
    reader.Read("event", &e.event);
    reader.Read("epoch", &e.epoch);
    reader.Read("took_us", &e.took_us);
    reader.Read("steps_lost", &e.steps_lost);
    reader.Read("rank", &e.rank);
    reader.Read("group_size", &e.group_size);
    reader.Read("world_size", &e.world_size);
    reader.Read("status", &e.status);
    reader.Read("why", &e.why);
    reader.Read("message", &e.message);
    reader.Read("joined", &e.joined);
    reader.Read("left", &e.left);
    if (!reader.Check()) continue;
    story.json.push_back(line);
    const std::string words = WordsOf(e);
    if (!words.empty()) story.lines.push_back(StrCat(FormatTimeLocal(e.time_us), "  ", words));
  }
  return story;
}

}  // namespace overcap
