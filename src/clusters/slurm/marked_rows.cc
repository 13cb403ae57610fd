// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/marked_rows.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

}  // namespace

bool IsRowMark(std::string_view mark) {
  const auto fine = [](char c) { return IsLetter(c) || (c >= '0' && c <= '9'); };
  return mark.size() >= 8 && IsLetter(mark[0]) && std::all_of(mark.begin(), mark.end(), fine);
}

std::string FormatColumns(const RowColumns& columns, std::string_view mark) {
  std::string format;
  for (std::string_view name : columns.plain) format += StrCat(name, ':', kFieldEnd, ',');
  for (std::string_view name : columns.free) format += StrCat(name, ':', kFieldEnd, mark, ',');
  if (!format.empty()) format.pop_back();
  return format;
}

MarkedRows::MarkedRows(std::string_view text, std::string_view mark, size_t plain, size_t free)
    : rest_(text), free_end_(StrCat(kFieldEnd, mark)), plain_(plain), free_(free) {}

Result<bool> MarkedRows::Next(std::vector<std::string_view>* fields) {
  fields->clear();
  if (rest_.empty()) return false;
  const auto cut = [&] {
    return Fail(ErrorCode::kCorrupt, StrCat("the answer is cut off or garbled in row ", rows_ + 1));
  };
  for (size_t i = 0; i < plain_ + free_; ++i) {
    const bool plain = i < plain_;
    const size_t end = plain ? rest_.find(kFieldEnd) : rest_.find(free_end_);
    if (end == std::string_view::npos) return cut();
    fields->push_back(rest_.substr(0, end));
    rest_.remove_prefix(end + (plain ? 1 : free_end_.size()));
  }
  if (rest_.empty() || rest_[0] != '\n') return cut();
  rest_.remove_prefix(1);
  ++rows_;
  return true;
}

}  // namespace overcap
