// SPDX-License-Identifier: Apache-2.0
#include "model/group_event.h"

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "model/json_fields.h"

namespace overcap {
namespace {

std::string Names(std::string_view what, const std::vector<std::string>& hosts) {
  return hosts.empty() ? "" : StrCat(", ", what, ": ", ToUtf8(Join(hosts, " ")));
}

std::string EpochWords(const GroupEvent& e) {
  std::string text =
      StrCat("epoch ", e.epoch, ": ", CountOf(e.world_size, "rank"), " on ", CountOf(e.group_size, "node"),
             ", formed in ", e.took_us / 1000, " ms", Names("joined", e.joined), Names("left", e.left));
  if (e.steps_lost >= 0) text += StrCat(", ", CountOf(e.steps_lost, "step"), " lost");
  return e.why.empty() ? text : StrCat(text, "; after: ", ToUtf8(e.why));
}

}  // namespace

std::optional<GroupEvent> ParseGroupEvent(std::string_view line) {
  const auto json = ParseJsonObject(line, "event");
  if (!json) return std::nullopt;
  GroupEvent e;
  FieldReader reader(*json, "event");
  reader.Read("t", &e.time_us);
  reader.Read("time_us", &e.time_us);
  reader.Read("attempt", &e.attempt);
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
  if (!reader.Check() || e.event.empty()) return std::nullopt;
  return e;
}

std::string GroupEventWords(const GroupEvent& e) {
  if (e.event == "epoch") return EpochWords(e);
  if (e.event == "leads") return "this node leads";
  if (e.event == "failed")
    return StrCat("rank ", e.rank, " failed", e.message.empty() ? "" : ": ", ToUtf8(e.message));
  if (e.event == "hung") return StrCat("rank ", e.rank, " hung");
  if (e.event == "cut_off") return StrCat("ranks of epoch ", e.epoch, " were killed: ", ToUtf8(e.why));
  if (e.event == "ended") return StrCat("ended with status ", e.status);
  return "";
}

}  // namespace overcap
