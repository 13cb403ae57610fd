// SPDX-License-Identifier: Apache-2.0
#include "control/sweep.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "control/submitter_environment.h"

namespace overcap {
namespace {

bool IsVariableName(std::string_view name) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::ranges::all_of(name, fits);
}

std::vector<std::string> Values(std::string_view text) {
  std::vector<std::string> values(1);
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == ',' || text[i + 1] == '\\');
    if (escape) {
      values.back() += text[++i];
    } else if (text[i] == ',') {
      values.emplace_back();
    } else {
      values.back() += text[i];
    }
  }
  return values;
}

}  // namespace

Result<SweepAxis> ParseSweepAxis(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string name(text.substr(0, equals));
  if (equals == std::string_view::npos || !IsVariableName(name)) {
    return Fail(ErrorCode::kUsage,
                StrCat("sweep ", Quoted(text), " does not begin with a variable's name and '='"),
                "write it like lr=1e-4,1e-3");
  }
  if (StaysWithSubmitter(name))
    return Fail(ErrorCode::kUsage, StrCat("sweep '", name, "': jobs do not get that variable from outside"));
  if (equals + 1 == text.size())
    return Fail(ErrorCode::kUsage, StrCat("sweep '", name, "' has no values"), "write it like lr=1e-4,1e-3");
  return SweepAxis{name, Values(text.substr(equals + 1))};
}

Result<std::vector<SweepAxis>> ParseSweep(const std::vector<std::string>& texts) {
  std::vector<SweepAxis> sweep;
  for (const std::string& text : texts) {
    OC_TRY(axis, ParseSweepAxis(text));
    if (std::ranges::find(sweep, axis.name, &SweepAxis::name) != sweep.end())
      return Fail(ErrorCode::kUsage, StrCat("sweep '", axis.name, "' stands there twice"),
                  "give all its values at once, with commas");
    sweep.push_back(std::move(axis));
    if (SweepCount(sweep) > kMaxArrayTasks)
      return Fail(ErrorCode::kUsage, StrCat("the sweep has more than ", kMaxArrayTasks, " combinations"));
  }
  return sweep;
}

ArraySpec SweepArray(const std::vector<SweepAxis>& sweep, int limit) {
  return {{{0, static_cast<int>(SweepCount(sweep)) - 1, 1}}, limit};
}

std::vector<std::string> SweepValues(const std::vector<SweepAxis>& sweep, int position) {
  std::vector<std::string> values = SweepVariables(sweep, position);
  for (size_t i = 0; i < values.size(); ++i) values[i].erase(0, sweep[i].name.size() + 1);
  return values;
}

}  // namespace overcap
