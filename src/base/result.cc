// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace overcap {
namespace {

struct CodeRow {
  ErrorCode code;
  std::string_view name;
  int exit_status;
};

// The one list of error codes; exit statuses are stable.
constexpr std::array<CodeRow, 7> kCodes = {{
    {ErrorCode::kUsage, "usage", 2},
    {ErrorCode::kNotFound, "not_found", 3},
    {ErrorCode::kDenied, "denied", 4},
    {ErrorCode::kUnavailable, "unavailable", 5},
    {ErrorCode::kConflict, "conflict", 6},
    {ErrorCode::kCorrupt, "corrupt", 7},
    {ErrorCode::kInternal, "internal", 70},
}};

const CodeRow& Row(ErrorCode code) {
  for (const CodeRow& row : kCodes) {
    if (row.code == code) return row;
  }
  return kCodes.back();
}

ErrorCode CodeOfErrno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS:
      return ErrorCode::kDenied;
    case ENOSPC:
    case EDQUOT:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return ErrorCode::kUnavailable;
    case EEXIST:
      return ErrorCode::kConflict;
    default:
      return ErrorCode::kInternal;
  }
}

std::string HintOfErrno(int error_number) {
  if (error_number == ENOSPC || error_number == EDQUOT) return "free some disk space, then try again";
  return {};
}

}  // namespace

std::string_view ErrorCodeName(ErrorCode code) {
  return Row(code).name;
}

ErrorCode ErrorCodeFromName(std::string_view name) {
  for (const CodeRow& row : kCodes) {
    if (row.name == name) return row.code;
  }
  return ErrorCode::kInternal;
}

int ExitStatus(ErrorCode code) {
  return Row(code).exit_status;
}

Error ErrnoError(int error_number, std::string what) {
  return Error{CodeOfErrno(error_number), std::move(what) + ": " + std::strerror(error_number),
               HintOfErrno(error_number)};
}

}  // namespace overcap
