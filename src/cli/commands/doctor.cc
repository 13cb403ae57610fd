// SPDX-License-Identifier: Apache-2.0
#include "control/doctor.h"

#include <cstdlib>

#include "base/json_writer.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/commands/findings.h"
#include "cli/world.h"

namespace overcap::cli {
namespace {

std::string AsJson(const std::vector<Finding>& findings, bool healthy) {
  JsonWriter json;
  json.BeginObject().Field("version", OVERCAP_VERSION).Field("healthy", healthy).Key("findings").BeginArray();
  for (const Finding& finding : findings) {
    WriteFinding(finding, &json);
  }
  return json.EndArray().EndObject().Take();
}

Result<int> RunDoctor(World& world, const Args&) {
  const char* path = std::getenv("PATH");
  const auto findings =
      Examine({world.root(), LoadConfig(world.config_places()), path != nullptr ? path : ""});
  const bool healthy = IsHealthy(findings);
  if (world.out().json()) {
    world.out().Json(AsJson(findings, healthy));
  } else {
    PrintFindings(findings, world.out());
  }
  return healthy ? 0 : 1;
}

}  // namespace

constinit const Command kDoctor = {.name = "doctor",
                                   .summary = "what is detected, what is missing, what to do",
                                   .max_words = 0,
                                   .run = RunDoctor,
                                   .group = CommandGroup::kSetup,
                                   .without_config = true};

}  // namespace overcap::cli
