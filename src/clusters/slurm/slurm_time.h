// SPDX-License-Identifier: Apache-2.0
// Spans and points in time as Slurm's programs read and print them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace overcap {

constexpr int64_t kSlurmUnlimited = INT64_MAX;

// Seconds of "30" (minutes), "MM:SS", "HH:MM:SS", "D-HH", "D-HH:MM", "D-HH:MM:SS"; kSlurmUnlimited for
// "UNLIMITED"; nullopt for words that tell no time ("INVALID", "N/A", "Partition_Limit") and for anything
// else.
std::optional<int64_t> ParseSlurmDuration(std::string_view text);
// "D-HH:MM:SS", or "HH:MM:SS" below a day; what sbatch's --time takes.
std::string FormatSlurmDuration(int64_t seconds);

// Microseconds since 1970 of "1794734712" (SLURM_TIME_FORMAT=%s) or "2026-11-15T02:15:07" in this process's
// time zone; nullopt for "Unknown", "N/A", "None", zero and anything else. Prefer the first form: an hour of
// the second comes twice each autumn.
std::optional<int64_t> ParseSlurmTime(std::string_view text);
// "2026-11-15T02:15:07" in this process's time zone: what sacct's --starttime takes.
std::string FormatSlurmTime(int64_t unix_us);

}  // namespace overcap
