// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/torchrun_console.h"

#include "base/text.h"

namespace overcap::cli {
namespace {

constexpr int kBothStreams = 3;

// "0" to "3": a set of streams.
Result<int> Streams(std::string_view flag, std::string_view whole, std::string_view text) {
  const auto value = ParseInt(text);
  if (value && *value >= 0 && *value <= kBothStreams) return static_cast<int>(*value);
  return Fail(ErrorCode::kUsage,
              StrCat(flag, ": ", Quoted(whole), " is not 0, 1, 2, 3, nor a list as 0:3,1:2"));
}

// Streams by local rank. Ranks that are not there are none of ours, as torchrun has it.
Result<std::vector<int>> StreamsOfRanks(std::string_view flag, std::string_view text, int ranks) {
  std::vector<int> streams(static_cast<size_t>(ranks));
  if (text.empty()) return streams;
  if (text.find(':') == text.npos) {
    OC_TRY(all, Streams(flag, text, text));
    streams.assign(streams.size(), all);
    return streams;
  }
  for (const std::string& one : Split(text, ',')) {
    const size_t colon = one.find(':');
    const auto rank = ParseInt(one.substr(0, colon));
    OC_TRY(value, Streams(flag, text, colon == one.npos || !rank || *rank < 0 ? "" : one.substr(colon + 1)));
    if (*rank < ranks) streams[static_cast<size_t>(*rank)] = value;
  }
  return streams;
}

Result<std::vector<bool>> ReadFilter(const Args& args, int ranks) {
  const std::string_view text = args.Get("--local-ranks-filter");
  std::vector<bool> shown(static_cast<size_t>(ranks), text.empty());
  if (text.empty()) return shown;
  for (const std::string& one : Split(text, ',')) {
    const auto rank = ParseInt(Trim(one));
    if (!rank || *rank < 0) {
      return Fail(ErrorCode::kUsage, StrCat(args.Typed("--local-ranks-filter"), ": ", Quoted(text),
                                            " is no list of ranks, as 0,1"));
    }
    if (*rank < ranks) shown[static_cast<size_t>(*rank)] = true;
  }
  return shown;
}

}  // namespace

bool IsTorchrunTee(std::string_view text) {
  return text == "1" || text == "2" || text.find(':') != text.npos;
}

Result<std::vector<RankView>> ReadViews(const Args& args, int ranks) {
  const std::string_view tee_text = args.Get("--tee") == "all" ? "3" : args.Get("--tee");
  const bool asked = args.Has("--redirects") || args.Has("--local-ranks-filter") ||
                     args.Has("--log-line-prefix-template") || IsTorchrunTee(tee_text) ||
                     args.Get("--tee") == "3";
  if (!asked || args.Get("--tee") == "none") return std::vector<RankView>();
  OC_TRY(tee, StreamsOfRanks(args.Typed("--tee"), tee_text, ranks));
  OC_TRY(redirects, StreamsOfRanks(args.Typed("--redirects"), args.Get("--redirects"), ranks));
  OC_TRY(filter, ReadFilter(args, ranks));
  std::vector<RankView> views(static_cast<size_t>(ranks));
  for (size_t rank = 0; rank < views.size(); ++rank) {
    if (!filter[rank]) continue;
    views[rank].shown = (kBothStreams & ~redirects[rank]) | tee[rank];
    views[rank].marked = tee[rank];
  }
  return views;
}

}  // namespace overcap::cli
