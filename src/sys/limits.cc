// SPDX-License-Identifier: Apache-2.0
#include "sys/limits.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <sys/resource.h>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

using Resource = decltype(RLIMIT_NOFILE);

struct Row {
  std::string_view name;
  Resource resource;
  std::string_view title;  // in /proc/PID/limits
};
constexpr std::array<Row, 16> kRows = {{{"as", RLIMIT_AS, "Max address space"},
                                        {"core", RLIMIT_CORE, "Max core file size"},
                                        {"cpu", RLIMIT_CPU, "Max cpu time"},
                                        {"data", RLIMIT_DATA, "Max data size"},
                                        {"fsize", RLIMIT_FSIZE, "Max file size"},
                                        {"locks", RLIMIT_LOCKS, "Max file locks"},
                                        {"memlock", RLIMIT_MEMLOCK, "Max locked memory"},
                                        {"msgqueue", RLIMIT_MSGQUEUE, "Max msgqueue size"},
                                        {"nice", RLIMIT_NICE, "Max nice priority"},
                                        {"nofile", RLIMIT_NOFILE, "Max open files"},
                                        {"nproc", RLIMIT_NPROC, "Max processes"},
                                        {"rss", RLIMIT_RSS, "Max resident set"},
                                        {"rtprio", RLIMIT_RTPRIO, "Max realtime priority"},
                                        {"rttime", RLIMIT_RTTIME, "Max realtime timeout"},
                                        {"sigpending", RLIMIT_SIGPENDING, "Max pending signals"},
                                        {"stack", RLIMIT_STACK, "Max stack size"}}};

// One number of /proc/PID/limits; nullopt: neither a number nor "unlimited".
std::optional<int64_t> Amount(std::string_view word) {
  if (word == "unlimited") return -1;
  const auto value = ParseInt(word);
  return value && *value >= 0 ? std::optional<int64_t>(*value) : std::nullopt;
}

// "Max open files            1024                 4096                 files     "
std::optional<NamedLimit> ParseLimitLine(std::string_view line) {
  for (const Row& row : kRows) {
    if (!line.starts_with(row.title)) continue;
    std::vector<std::string> words;
    for (const std::string& word : Split(line.substr(row.title.size()), ' ')) {
      if (!word.empty()) words.push_back(word);
    }
    const auto soft = words.size() >= 2 ? Amount(words[0]) : std::nullopt;
    const auto hard = words.size() >= 2 ? Amount(words[1]) : std::nullopt;
    if (!soft || !hard) return std::nullopt;
    return NamedLimit{std::string(row.name), *soft, *hard};
  }
  return std::nullopt;
}

rlim_t ToKernel(int64_t value) {
  return value < 0 ? RLIM_INFINITY : static_cast<rlim_t>(value);
}

// Real, effective, saved and file system id: all four.
bool IsWholly(pid_t pid, uid_t uid) {
  const std::string text = PosixFiles().Read(StrCat("/proc/", pid, "/status")).value_or("");
  for (const std::string& line : Split(text, '\n')) {
    if (!line.starts_with("Uid:")) continue;
    const std::vector<std::string> ids = Split(Trim(std::string_view(line).substr(4)), '\t');
    return ids.size() == 4 &&
           std::ranges::all_of(ids, [&](const std::string& id) { return id == std::to_string(uid); });
  }
  return false;
}

}  // namespace

Result<std::vector<NamedLimit>> LimitsOfProcess(pid_t pid, uid_t uid) {
  OC_TRY(text, PosixFiles().Read(StrCat("/proc/", pid, "/limits")));
  std::vector<NamedLimit> limits;
  for (const std::string& line : Split(text, '\n')) {
    if (auto limit = ParseLimitLine(line)) limits.push_back(*std::move(limit));
  }
  std::ranges::sort(limits, {}, &NamedLimit::name);
  // After the look: a number that went to somebody else meanwhile is found out here.
  if (IsWholly(pid, uid)) return limits;
  return Fail(ErrorCode::kDenied, StrCat("process ", pid, " is not user ", uid, "'s alone"));
}

Result<void> SetOwnLimits(const std::vector<NamedLimit>& limits) {
  for (const NamedLimit& limit : limits) {
    const auto* row = std::ranges::find(kRows, limit.name, &Row::name);
    if (row == kRows.end()) continue;
    rlimit value{ToKernel(limit.soft), ToKernel(limit.hard)};
    if (setrlimit(row->resource, &value) == 0 || errno == EINVAL) continue;
    // In a container even root may be unable to raise one: then it stays as low as it is.
    rlimit own{};
    if (errno == EPERM && getrlimit(row->resource, &own) == 0) {
      value.rlim_max = std::min(value.rlim_max, own.rlim_max);
      value.rlim_cur = std::min(value.rlim_cur, value.rlim_max);
      if (setrlimit(row->resource, &value) == 0) continue;
    }
    return Fail(ErrnoError(errno, StrCat("cannot set the limit '", limit.name, "'")));
  }
  return {};
}

std::string FormatLimits(const std::vector<NamedLimit>& limits) {
  std::string text;
  for (const NamedLimit& limit : limits)
    text += StrCat(text.empty() ? "" : ",", limit.name, "=", limit.soft, ":", limit.hard);
  return text;
}

Result<std::vector<NamedLimit>> ParseLimits(std::string_view text) {
  std::vector<NamedLimit> limits;
  for (const std::string& part : text.empty() ? std::vector<std::string>() : Split(text, ',')) {
    const size_t equals = part.find('='), colon = part.find(':');
    const bool shaped = equals != std::string::npos && colon != std::string::npos && equals < colon;
    const auto soft = shaped ? ParseInt(part.substr(equals + 1, colon - equals - 1)) : std::nullopt;
    const auto hard = shaped ? ParseInt(part.substr(colon + 1)) : std::nullopt;
    if (!soft || !hard || *soft < -1 || *hard < -1)
      return Fail(ErrorCode::kUsage, StrCat("'", part, "' is no limit"));
    limits.push_back({part.substr(0, equals), *soft, *hard});
  }
  return limits;
}

}  // namespace overcap
