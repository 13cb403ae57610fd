// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>

#include "base/text.h"

namespace overcap::cli {
namespace {

constexpr int kGap = 2;  // blanks between columns
constexpr int kNarrowestFlexible = 8;

// One line that cannot move the cursor: what stands in a cell often comes from the user's command.
std::string OneLine(std::string text) {
  const auto plain = [](char c) { return c >= 0x20 && c < 0x7F; };
  if (std::ranges::all_of(text, plain)) return text;
  std::string out = ToUtf8(text);
  std::ranges::replace_if(
      out, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
}

void AppendCell(const std::string& text, int width, bool right, Style style, bool last, std::string* row) {
  int shown_width = DisplayWidth(text);
  std::string shortened;
  if (shown_width > width) {
    shortened = ShortenToWidth(text, width);
    shown_width = DisplayWidth(shortened);
  }
  const std::string& shown = shortened.empty() ? text : shortened;
  const auto blanks = static_cast<size_t>(std::max(0, width - shown_width));
  if (right) row->append(blanks, ' ');
  row->append(style == Style::kPlain ? shown : PaintText(style, shown));
  if (!right && !last) row->append(blanks, ' ');
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
  for (std::string& cell : cells) cell = OneLine(std::move(cell));
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
    const size_t begin = out.size();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (widths[i] < 0) continue;
      if (out.size() > begin) out.append(kGap, ' ');
      AppendCell(text(i), widths[i], columns_[i].right, color ? style(i) : Style::kPlain,
                 i + 1 == columns_.size(), &out);
    }
    while (out.size() > begin && out.back() == ' ') out.pop_back();
    out += '\n';
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
