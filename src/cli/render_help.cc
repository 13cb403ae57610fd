// SPDX-License-Identifier: Apache-2.0
#include "cli/render_help.h"

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/table.h"
#include "cli/terminal.h"

namespace overcap::cli {
namespace {

constexpr int kWidest = 100;  // longer lines are hard to read
constexpr int kNarrowest = 40;

// Where "](target)" ends that begins here; 0 when it does not.
size_t EndOfTarget(std::string_view line, size_t at) {
  if (line.substr(at, 2) != "](") return 0;
  const size_t end = line.find(')', at);
  return end == std::string_view::npos ? 0 : end;
}

// Running text: `ticks`, **stars** and all of [a link](target) but its text go.
std::string Plain(std::string_view line) {
  std::string out;
  size_t link = std::string::npos;  // where in `out` the last '[' stands
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '`') continue;
    if (line.substr(i, 2) == "**") {
      ++i;
      continue;
    }
    if (const size_t end = EndOfTarget(line, i); end != 0 && link != std::string::npos) {
      out.erase(link, 1);
      link = std::string::npos;
      i = end;
      continue;
    }
    if (line.substr(i, 2) == "\\|") ++i;
    if (line[i] == '[') link = out.size();
    out += line[i];
  }
  return out;
}

// `text` in lines of that width behind `first`, and behind as many blanks in the lines that follow.
std::string Wrap(std::string_view first, std::string_view text, int width) {
  const int indent = DisplayWidth(first);
  std::string out(first);
  int column = indent;
  for (const std::string& word : Split(text, ' ')) {
    if (word.empty()) continue;
    const int wide = DisplayWidth(word);
    if (column > indent && column + 1 + wide > width) {
      out += StrCat("\n", std::string(indent, ' '));
      column = indent;
    }
    if (column > indent) out += ' ', ++column;
    out += word;
    column += wide;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out + "\n";
}

// "| a | b |" -> {"a", "b"}
std::vector<std::string> RowCells(std::string_view line) {
  std::vector<std::string> cells;
  std::string cell;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|' && line[i - 1] != '\\') {
      cells.push_back(Plain(Trim(cell)));
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

std::string Padded(std::string text, int width) {
  return text.append(static_cast<size_t>(std::max(0, width - DisplayWidth(text))), ' ');
}

// The rows of a markdown table as indented columns; the title row and the rule under it are left out. A row
// with a cell that is too long for its column has the last one below the others.
std::string RenderRows(const std::vector<std::vector<std::string>>& rows, int width) {
  const int most = width * 2 / 5;
  std::vector<int> widths;
  for (size_t i = 2; i < rows.size(); ++i) {
    widths.resize(std::max(widths.size(), rows[i].size()), 0);
    for (size_t at = 0; at < rows[i].size(); ++at) {
      const int wide = DisplayWidth(rows[i][at]);
      if (wide <= most) widths[at] = std::max(widths[at], wide);
    }
  }
  std::string out;
  for (size_t i = 2; i < rows.size(); ++i) {
    std::string before;
    bool fits = true;
    int indent = 2;
    for (size_t at = 0; at + 1 < rows[i].size(); ++at) {
      before += Padded(rows[i][at], widths[at]) + "  ";
      fits = fits && DisplayWidth(rows[i][at]) <= widths[at];
      indent += widths[at] + 2;
    }
    const std::string last = rows[i].empty() ? "" : rows[i].back();
    if (fits) {
      out += Wrap("  " + before, last, width);
    } else {
      out += Wrap("  ", before, width) + Wrap(std::string(static_cast<size_t>(indent), ' '), last, width);
    }
  }
  return out;
}

int WidthOf(const HelpStyle& style) {
  return style.width == 0 ? kWidest : std::clamp(style.width, kNarrowest, kWidest);
}

class Renderer {
 public:
  explicit Renderer(const HelpStyle& style) : color_(style.color), width_(WidthOf(style)) {}

  void Take(const std::string& line) {
    const bool row = !in_code_ && line.starts_with("|");
    const bool text =
        !in_code_ && !row && !line.empty() && !line.starts_with("```") && !line.starts_with("#");
    if (!row) EndTable();
    if (!text) EndParagraph();
    if (row) {
      rows_.push_back(RowCells(line));
    } else if (text) {
      paragraph_ += line + " ";
    } else if (line.starts_with("```")) {
      in_code_ = !in_code_;
    } else if (in_code_) {
      out_ += StrCat("  ", line, "\n");
    } else if (line.starts_with("#")) {
      out_ += HelpHeading(Trim(line.substr(line.find_first_not_of('#'))), color_);
    } else {
      out_ += "\n";
    }
  }

  std::string Finish() {
    EndTable();
    EndParagraph();
    while (out_.ends_with("\n\n")) out_.pop_back();
    return std::move(out_);
  }

 private:
  void EndTable() {
    out_ += RenderRows(rows_, width_);
    rows_.clear();
  }
  void EndParagraph() {
    if (!paragraph_.empty()) out_ += Wrap("", Plain(paragraph_), width_);
    paragraph_.clear();
  }

  const bool color_;
  const int width_;
  bool in_code_ = false;
  std::vector<std::vector<std::string>> rows_;  // of the table that has begun
  std::string paragraph_;
  std::string out_;
};

}  // namespace

std::string WrapHelp(std::string_view first, std::string_view text, const HelpStyle& style) {
  return Wrap(first, text, WidthOf(style));
}

std::string HelpHeading(std::string_view text, bool color) {
  return StrCat(color ? PaintText(Style::kBold, text) : std::string(text), "\n");
}

std::string RenderHelp(std::string_view markdown, const HelpStyle& style) {
  Renderer renderer(style);
  for (const std::string& line : Split(markdown, '\n')) renderer.Take(line);
  return renderer.Finish();
}

}  // namespace overcap::cli
