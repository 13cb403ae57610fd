// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/findings.h"

#include <algorithm>

#include "base/text.h"

namespace overcap::cli {
namespace {

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

}  // namespace

bool IsHealthy(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& found) { return found.health == Health::kBroken; });
}

void PrintFindings(const std::vector<Finding>& findings, Output& out) {
  for (const Finding& finding : findings) PrintFinding(finding, out);
}

void WriteFinding(const Finding& finding, JsonWriter* json) {
  json->BeginObject().Field("topic", finding.topic).Field("health", HealthName(finding.health));
  json->Field("text", finding.text).Field("hint", finding.hint).EndObject();
}

}  // namespace overcap::cli
