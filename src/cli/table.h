// SPDX-License-Identifier: Apache-2.0
// Text in columns.
#pragma once

#include <string>
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
  void AddRow(std::vector<std::string> cells, std::vector<Style> styles = {});
  bool empty() const { return rows_.empty(); }

  // The lines, each with its newline; columns in which no row has anything are left out. `width` 0: as wide
  // as it needs to be.
  std::string Render(int width, bool color) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    std::vector<Style> styles;
  };
  std::vector<int> Widths(int width) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

// The escape sequence of a style around `text`; `text` itself for kPlain.
std::string PaintText(Style style, std::string_view text);

}  // namespace overcap::cli
