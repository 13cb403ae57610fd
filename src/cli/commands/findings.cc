// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/findings.h"

#include <algorithm>

#include "base/text.h"

namespace overcap::cli {
namespace {

Style StyleOf(Health health) {
  return health == Health::kFine ? Style::kGreen : health == Health::kWorse ? Style::kYellow : Style::kRed;
}

constexpr size_t kHealthWidth = 7;

void PrintFinding(const Finding& finding, size_t topic_width, Output& out) {
  std::string word(HealthName(finding.health));
  word.resize(kHealthWidth, ' ');
  std::string topic = finding.topic;
  topic.resize(topic_width, ' ');
  out.Line(StrCat(out.Paint(StyleOf(finding.health), word), "  ", topic, "  ", ToUtf8(finding.text)));
  const std::string indent(kHealthWidth + topic_width + 4, ' ');
  if (!finding.hint.empty()) out.Line(indent + out.Paint(Style::kDim, finding.hint));
}

}  // namespace

bool IsHealthy(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& found) { return found.health == Health::kBroken; });
}

void PrintFindings(const std::vector<Finding>& findings, Output& out) {
  size_t topic_width = 13;
  for (const Finding& finding : findings) topic_width = std::max(topic_width, finding.topic.size());
  for (const Finding& finding : findings) PrintFinding(finding, topic_width, out);
}

void WriteFinding(const Finding& finding, JsonWriter* json) {
  json->BeginObject().Field("topic", finding.topic).Field("health", HealthName(finding.health));
  json->Field("text", finding.text).Field("hint", finding.hint).EndObject();
}

}  // namespace overcap::cli
