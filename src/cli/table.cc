// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>

#include "base/text.h"

namespace overcap::cli {
namespace {

constexpr int kGap = 2;  // blanks between columns
constexpr int kNarrowestFlexible = 8;

bool IsPlain(std::string_view text) {
  bool odd = false;  // without a way out in the middle: so it is done many bytes at once
  for (const char c : text) odd |= static_cast<unsigned char>(c - 0x20) >= 0x7F - 0x20;
  return !odd;
}

// One line that cannot move the cursor: what stands in a cell often comes from the user's command.
std::string OneLine(std::string_view text) {
  std::string out = ToUtf8(text);
  std::ranges::replace_if(
      out, [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return out;
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

Table::Cell Table::Keep(std::string_view text, Style style) {
  const bool plain = IsPlain(text);
  const std::string cleaned = plain ? std::string() : OneLine(text);
  const std::string_view kept = plain ? text : std::string_view(cleaned);
  const Cell cell{text_.size(), static_cast<uint32_t>(kept.size()),
                  plain ? static_cast<int>(kept.size()) : DisplayWidth(kept), style};
  text_.append(kept);
  return cell;
}

void Table::AddRow(std::initializer_list<std::string_view> cells, std::initializer_list<Style> styles) {
  for (size_t i = 0; i < columns_.size(); ++i) {
    cells_.push_back(Keep(i < cells.size() ? cells.begin()[i] : std::string_view(),
                          i < styles.size() ? styles.begin()[i] : Style::kPlain));
  }
}

void Table::AddRow(const std::vector<std::string>& cells) {
  for (size_t i = 0; i < columns_.size(); ++i)
    cells_.push_back(Keep(i < cells.size() ? cells[i] : std::string_view(), Style::kPlain));
}

void Table::SetCell(size_t row, size_t column, std::string_view text) {
  Cell& cell = cells_[row * columns_.size() + column];
  cell = Keep(text, cell.style);
}

// -1 for a column that has nothing to show.
std::vector<int> Table::Widths(int width) const {
  std::vector<int> widths(columns_.size(), cells_.empty() ? 0 : -1);
  for (size_t i = 0; i < cells_.size(); i += columns_.size()) {
    for (size_t column = 0; column < columns_.size(); ++column) {
      const Cell& cell = cells_[i + column];
      if (cell.size > 0) widths[column] = std::max(widths[column], cell.width);
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

void Table::AppendLine(const Cell* cells, const std::vector<int>& widths, bool color,
                       std::string* out) const {
  const size_t begin = out->size();
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (widths[i] < 0) continue;
    if (out->size() > begin) out->append(kGap, ' ');
    const Cell& cell = cells[i];
    std::string_view shown = TextOf(cell);
    std::string shortened;
    int shown_width = cell.width;
    if (shown_width > widths[i]) {
      shown = shortened = ShortenToWidth(shown, widths[i]);
      shown_width = DisplayWidth(shown);
    }
    const auto blanks = static_cast<size_t>(std::max(0, widths[i] - shown_width));
    if (columns_[i].right) out->append(blanks, ' ');
    if (color && cell.style != Style::kPlain) {
      out->append(PaintText(cell.style, shown));
    } else {
      out->append(shown);
    }
    if (!columns_[i].right && i + 1 < columns_.size()) out->append(blanks, ' ');
  }
  while (out->size() > begin && out->back() == ' ') out->pop_back();
  *out += '\n';
}

std::string Table::Render(int width, bool color) const {
  const std::vector<int> widths = Widths(width);
  Table titles(columns_);
  for (const Column& column : columns_) titles.cells_.push_back(titles.Keep(column.title, Style::kBold));
  std::string out;
  titles.AppendLine(titles.cells_.data(), widths, color, &out);
  out.reserve(out.size() * (rows() + 1) + 2 * text_.size());
  for (size_t i = 0; i < cells_.size(); i += columns_.size()) AppendLine(&cells_[i], widths, color, &out);
  return out;
}

}  // namespace overcap::cli
