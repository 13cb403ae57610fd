// SPDX-License-Identifier: Apache-2.0
#include "control/doctor.h"

#include <cstdlib>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/world.h"

namespace overcap::cli {
namespace {

std::string AsJson(const std::vector<Finding>& findings, bool healthy) {
  JsonWriter json;
  json.BeginObject().Field("version", OVERCAP_VERSION).Field("healthy", healthy).Key("findings").BeginArray();
  for (const Finding& finding : findings) {
    json.BeginObject().Field("topic", finding.topic).Field("health", HealthName(finding.health));
    json.Field("text", finding.text).Field("hint", finding.hint).EndObject();
  }
  return json.EndArray().EndObject().Take();
}

Style StyleOf(Health health) {
  return health == Health::kFine ? Style::kGreen : health == Health::kWorse ? Style::kYellow : Style::kRed;
}

void PrintFinding(const Finding& finding, Output& out) {
  std::string word(HealthName(finding.health));
  word.resize(7, ' ');
  std::string topic = finding.topic;
  topic.resize(std::max<size_t>(13, topic.size()), ' ');
  out.Line(StrCat(out.Paint(StyleOf(finding.health), word), "  ", topic, "  ", ToUtf8(finding.text)));
  if (!finding.hint.empty()) out.Line(StrCat(std::string(24, ' '), out.Paint(Style::kDim, finding.hint)));
}

Result<int> Run(World& world, const Args&) {
  const char* path = std::getenv("PATH");
  const auto findings =
      Examine({world.root(), LoadConfig(world.config_places()), path != nullptr ? path : ""});
  bool healthy = true;
  for (const Finding& finding : findings) healthy = healthy && finding.health != Health::kBroken;
  if (world.out().json()) {
    world.out().Json(AsJson(findings, healthy));
  } else {
    for (const Finding& finding : findings) PrintFinding(finding, world.out());
  }
  return healthy ? 0 : 1;
}

}  // namespace

constinit const Command kDoctor = {.name = "doctor",
                                   .summary = "what is detected, what is missing, what to do",
                                   .max_words = 0,
                                   .run = Run,
                                   .group = CommandGroup::kSetup,
                                   .without_config = true};

}  // namespace overcap::cli
