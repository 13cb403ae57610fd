// SPDX-License-Identifier: Apache-2.0
// What the files of a mirror hold, and how long it counts (docs/formats/slurm-mirror.md). No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace overcap {

constexpr size_t kMirrorHeaderMax = 16 << 10;

// Of an answer.
struct MirrorHeader {
  std::string of;        // what is mirrored; an answer of anything else is none
  std::string mark;      // random, of this answer alone
  int64_t taken_us = 0;  // when it was asked for
  int64_t took_us = 0;
  size_t bytes = 0;
  uint32_t crc = 0;
};

struct MirrorFailure {
  std::string of;
  int64_t tried_us = 0;
  int64_t took_us = 0;
  Error error;
};

// The line that stands before `text`; fills in `bytes` and `crc`.
std::string MirrorHeaderLine(MirrorHeader header, std::string_view text);
// From the beginning of a file, its header line and more; nullopt when it is none of ours.
std::optional<MirrorHeader> ParseMirrorHeader(std::string_view head, std::string_view of);
// The answer in a whole file, as a view of it; nullopt when it does not fit its header.
std::optional<std::string_view> MirrorBody(std::string_view file, const MirrorHeader& header);

std::string MirrorFailureLine(const MirrorFailure& failure);
std::optional<MirrorFailure> ParseMirrorFailure(std::string_view file, std::string_view of);

// How long ago `then_us` was; nullopt when it lies in the future: the clock was set back.
std::optional<int64_t> MirrorAge(int64_t now_us, int64_t then_us);

// Whether `a_us` was after `b_us`. A time in the future is before any other: it was written before the clock
// was set back.
bool MirrorLater(int64_t now_us, int64_t a_us, int64_t b_us);

struct MirrorPatience {
  int64_t min_interval_us = 5'000'000;
  int64_t max_age_us = 0;
};
// Whether what is known must do, without asking again. Either may be missing (null).
bool MirrorServes(int64_t now_us, const MirrorHeader* text, const MirrorFailure* failure,
                  const MirrorPatience& patience);
// Whether the failure came after the text.
bool MirrorFailureCounts(int64_t now_us, const MirrorHeader* text, const MirrorFailure* failure);

}  // namespace overcap
