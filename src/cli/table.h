// SPDX-License-Identifier: Apache-2.0
// Text in columns.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cli/output.h"

namespace overcap::cli {

struct Column {
  std::string title;
  bool right = false;     // aligned to the right (numbers)
  bool flexible = false;  // gives way first when the terminal is narrow
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell per column, missing ones are empty. Control characters in them are made harmless. `styles` (may
  // be shorter) paints whole cells; do not put escapes into the text.
  void AddRow(std::initializer_list<std::string_view> cells, std::initializer_list<Style> styles = {});
  void AddRow(const std::vector<std::string>& cells);
  size_t rows() const { return cells_.size() / columns_.size(); }
  void SetCell(size_t row, size_t column, std::string_view text);

  // The lines, each with its newline; columns in which no row has anything are left out. `width` 0: as wide
  // as it needs to be.
  std::string Render(int width, bool color) const;

 private:
  // Tens of thousands of rows are no rare thing: their text stands in one piece.
  struct Cell {
    size_t begin = 0;
    uint32_t size = 0;
    int width = 0;  // that it takes on a terminal
    Style style = Style::kPlain;
  };
  Cell Keep(std::string_view text, Style style);
  std::string_view TextOf(const Cell& cell) const {
    return std::string_view(text_).substr(cell.begin, cell.size);
  }
  std::vector<int> Widths(int width) const;
  void AppendLine(const Cell* cells, const std::vector<int>& widths, bool color, std::string* out) const;

  std::vector<Column> columns_;
  std::string text_;
  std::vector<Cell> cells_;  // row by row
};

// The escape sequence of a style around `text`; `text` itself for kPlain.
std::string PaintText(Style style, std::string_view text);

}  // namespace overcap::cli
