// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>

#include "base/text.h"

namespace overcap::cli {
namespace {

constexpr int kGap = 2;  // blanks between columns
constexpr int kNarrowestFlexible = 8;

// One line that cannot move the cursor: what stands in a cell often comes from the user's command.
std::string OneLine(std::string_view text) {
  std::string out = ToUtf8(text);
  std::ranges::replace_if(
      out, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
}

std::string Cell(const std::string& text, int width, bool right, Style style, bool color, bool last) {
  const std::string shown = ShortenToWidth(text, width);
  const std::string blanks(static_cast<size_t>(std::max(0, width - DisplayWidth(shown))), ' ');
  const std::string painted = color ? PaintText(style, shown) : shown;
  if (right) return blanks + painted;
  return last ? painted : painted + blanks;
}

}  // namespace

std::string PaintText(Style style, std::string_view text) {
  const char* code = "";
  switch (style) {
    case Style::kPlain:
      return std::string(text);
    case Style::kBold:
      code = "1";
      break;
    case Style::kDim:
      code = "2";
      break;
    case Style::kRed:
      code = "31";
      break;
    case Style::kGreen:
      code = "32";
      break;
    case Style::kYellow:
      code = "33";
      break;
    case Style::kBlue:
      code = "34";
      break;
  }
  return StrCat("\033[", code, "m", text, "\033[0m");
}

void Table::AddRow(std::vector<std::string> cells, std::vector<Style> styles) {
  cells.resize(columns_.size());
  styles.resize(columns_.size(), Style::kPlain);
  std::ranges::transform(cells, cells.begin(), OneLine);
  rows_.push_back({std::move(cells), std::move(styles)});
}

// -1 for a column that has nothing to show.
std::vector<int> Table::Widths(int width) const {
  std::vector<int> widths(columns_.size(), rows_.empty() ? 0 : -1);
  for (const Row& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i) {
      if (!row.cells[i].empty()) widths[i] = std::max(widths[i], DisplayWidth(row.cells[i]));
    }
  }
  int excess = -width - kGap;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] < 0) continue;
    widths[i] = std::max(widths[i], DisplayWidth(columns_[i].title));
    excess += widths[i] + kGap;
  }
  if (width == 0) return widths;
  for (size_t i = widths.size(); i-- > 0 && excess > 0;) {
    if (!columns_[i].flexible || widths[i] < 0) continue;
    const int given = std::clamp(widths[i] - kNarrowestFlexible, 0, excess);
    widths[i] -= given;
    excess -= given;
  }
  return widths;
}

std::string Table::Render(int width, bool color) const {
  const std::vector<int> widths = Widths(width);
  std::string out;
  const auto line = [&](const auto& text, const auto& style) {
    std::string row;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] < 0) continue;
      if (!row.empty()) row.append(kGap, ' ');
      row += Cell(text(i), widths[i], columns_[i].right, style(i), color, i + 1 == columns_.size());
    }
    row.erase(row.find_last_not_of(' ') + 1);
    out += row + "\n";
  };
  line([&](size_t i) -> const std::string& { return columns_[i].title; },
       [](size_t) { return Style::kBold; });
  for (const Row& row : rows_) {
    line([&](size_t i) -> const std::string& { return row.cells[i]; },
         [&](size_t i) { return row.styles[i]; });
  }
  return out;
}

}  // namespace overcap::cli
