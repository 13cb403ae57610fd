// SPDX-License-Identifier: Apache-2.0
#include "launch/logs/timed_lines.h"

#include <algorithm>
#include <queue>

#include "base/text.h"

namespace overcap {
namespace {

struct Piece {
  int64_t offset = 0;
  int stream = 1;
  int64_t time_us = 0;
};

// "OFFSET STREAM MICROSECONDS"; false for anything else, and for one that goes back in the log.
bool ReadPiece(std::string_view line, const std::vector<Piece>& before, Piece* piece) {
  const std::vector<std::string> words = Split(line, ' ');
  if (words.size() != 3) return false;
  const auto offset = ParseInt(words[0]), stream = ParseInt(words[1]), time = ParseInt(words[2]);
  if (!offset || !stream || !time || *offset < 0 || (*stream != 1 && *stream != 2)) return false;
  if (!before.empty() && *offset < before.back().offset) return false;
  *piece = {*offset, static_cast<int>(*stream), *time};
  return true;
}

std::vector<Piece> ReadPieces(std::string_view times) {
  std::vector<Piece> pieces;
  for (size_t at = 0, end = 0; (end = times.find('\n', at)) != times.npos; at = end + 1) {
    Piece piece;
    if (ReadPiece(times.substr(at, end - at), pieces, &piece)) pieces.push_back(piece);
  }
  return pieces;
}

}  // namespace

std::vector<TimedLine> LinesOf(int rank, std::string_view log, std::string_view times, int64_t begin) {
  const std::vector<Piece> pieces = ReadPieces(times);
  std::vector<TimedLine> lines;
  size_t next = 0;  // the first piece that begins behind `at`
  for (size_t at = 0; at < log.size();) {
    const size_t end = std::min(log.find('\n', at), log.size());
    while (next < pieces.size() && pieces[next].offset <= begin + static_cast<int64_t>(at)) ++next;
    const Piece piece = next == 0 ? Piece{} : pieces[next - 1];
    lines.push_back({rank, piece.stream, piece.time_us, log.substr(at, end - at)});
    at = end + 1;
  }
  return lines;
}

std::vector<TimedLine> InOrderOfTime(std::vector<std::vector<TimedLine>> ranks) {
  struct Head {
    size_t rank, line;
    int64_t time_us;
  };
  const auto later = [](const Head& a, const Head& b) {
    return a.time_us != b.time_us ? a.time_us > b.time_us : a.rank > b.rank;
  };
  std::priority_queue<Head, std::vector<Head>, decltype(later)> heads(later);
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks[rank].empty()) heads.push({rank, 0, ranks[rank][0].time_us});
  }
  std::vector<TimedLine> all;
  while (!heads.empty()) {
    const Head head = heads.top();
    heads.pop();
    all.push_back(ranks[head.rank][head.line]);
    const size_t line = head.line + 1;
    if (line < ranks[head.rank].size()) heads.push({head.rank, line, ranks[head.rank][line].time_us});
  }
  return all;
}

}  // namespace overcap
