// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_sparse.h"

#include "base/text.h"
#include "snapshot/tar/tar_header.h"

namespace overcap {
namespace {

constexpr size_t kNumber = 12, kInHeader = 4, kInBlock = 21;
constexpr size_t kHeaderRuns = 386, kHeaderMore = 482, kBlockMore = 504;
constexpr TarField kRealSize{483, kNumber};

// Runs of `count` slots at `offset`; an empty slot is the last.
bool TakeSlots(std::string_view block, size_t offset, size_t count, std::vector<TarRun>* runs) {
  for (size_t i = 0; i < count; ++i, offset += 2 * kNumber) {
    if (block[offset] == '\0' && block[offset + kNumber] == '\0') return true;
    const auto at = ParseTarNumber(block.substr(offset, kNumber));
    const auto length = ParseTarNumber(block.substr(offset + kNumber, kNumber));
    if (!at || !length || runs->size() >= kTarRunsMost) return false;
    runs->push_back({*at, *length});
  }
  return true;
}

}  // namespace

std::optional<OldSparseHeader> ParseOldSparseHeader(std::string_view block) {
  OldSparseHeader header;
  const auto size = ParseTarNumber(kRealSize.Of(block));
  if (!size || *size < 0 || !TakeSlots(block, kHeaderRuns, kInHeader, &header.runs)) return std::nullopt;
  header.real_size = *size;
  header.more = block[kHeaderMore] != '\0';
  return header;
}

std::optional<bool> ParseOldSparseBlock(std::string_view block, std::vector<TarRun>* runs) {
  if (!TakeSlots(block, 0, kInBlock, runs)) return std::nullopt;
  return block[kBlockMore] != '\0';
}

std::optional<std::vector<TarRun>> ParseSparseList(std::string_view text) {
  std::vector<TarRun> runs;
  bool length = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    const auto number = ParseInt(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!number || *number < 0 || runs.size() > kTarRunsMost) return std::nullopt;
    if (length)
      runs.back().length = *number;
    else
      runs.push_back({*number, 0});
    length = !length;
  }
  if (length) return std::nullopt;
  return runs;
}

std::optional<bool> SparseMapParser::Take(std::string_view line) {
  const auto number = ParseInt(line);
  if (!number || *number < 0) return std::nullopt;
  if (count_ < 0) {
    if (*number > static_cast<long long>(kTarRunsMost)) return std::nullopt;
    count_ = *number;
  } else if (!have_offset_) {
    runs_.push_back({*number, 0});
    have_offset_ = true;
  } else {
    runs_.back().length = *number;
    have_offset_ = false;
  }
  return !have_offset_ && static_cast<int64_t>(runs_.size()) == count_;
}

std::optional<bool> SparseMapParser::Feed(std::string_view block) {
  constexpr size_t kLongestLine = 20;
  while (true) {
    const size_t end = block.find('\n');
    if (end == std::string_view::npos) break;
    rest_.append(block.substr(0, end));
    if (rest_.size() > kLongestLine) return std::nullopt;
    const auto done = Take(rest_);
    if (!done || *done) return done;
    rest_.clear();
    block.remove_prefix(end + 1);
  }
  rest_.append(block);
  if (rest_.size() > kLongestLine) return std::nullopt;
  return false;
}

std::string EncodeSparseMap(const std::vector<TarRun>& runs) {
  std::string map = StrCat(runs.size(), "\n");
  for (const TarRun& run : runs) map.append(StrCat(run.offset, "\n", run.length, "\n"));
  map.resize((map.size() + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  return map;
}

bool NormaliseRuns(int64_t real_size, int64_t stored, std::vector<TarRun>* runs) {
  int64_t end = 0, sum = 0;
  for (const TarRun& run : *runs) {
    if (run.offset < end || run.length < 0 || run.offset > real_size || run.length > real_size - run.offset) {
      return false;
    }
    end = run.offset + run.length;
    sum += run.length;
  }
  std::erase_if(*runs, [](const TarRun& run) { return run.length == 0; });
  return sum == stored;
}

}  // namespace overcap
