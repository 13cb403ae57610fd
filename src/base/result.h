// SPDX-License-Identifier: Apache-2.0
// How a function says that it failed: Result<T> is a T or an Error; nothing of ours throws.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace overcap {

// Says what the caller can do about it, not where it broke.
enum class ErrorCode {
  kUsage,        // the request is wrong: change it
  kNotFound,     // the named thing is not there
  kDenied,       // not allowed: ask somebody
  kUnavailable,  // try again later; the only code that is retried
  kConflict,     // the thing is not in a state that allows it
  kCorrupt,      // stored data is damaged
  kInternal,     // a bug of ours or of the system below us
};

std::string_view ErrorCodeName(ErrorCode code);      // "usage", "not_found", ...
ErrorCode ErrorCodeFromName(std::string_view name);  // unknown names are kInternal

// The exit status of the program for each code; documented in docs/manual/exit-statuses.md.
int ExitStatus(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // one lower-case line that names the object in 'quotes'
  std::string hint;     // what to type next; may be empty
};

template <typename T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using tl::expected<T, Error>::expected;
};

template <>
class [[nodiscard]] Result<void> : public tl::expected<void, Error> {
 public:
  using tl::expected<void, Error>::expected;
};

inline tl::unexpected<Error> Fail(ErrorCode code, std::string message, std::string hint = {}) {
  return tl::unexpected<Error>(Error{code, std::move(message), std::move(hint)});
}
inline tl::unexpected<Error> Fail(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

// An Error from errno: "<what>: <strerror>", with the code that fits (ENOENT: kNotFound, EACCES: kDenied,
// ENOSPC and EAGAIN: kUnavailable, else kInternal).
Error ErrnoError(int error_number, std::string what);

}  // namespace overcap

// OC_TRY(name, expr): name = value of expr, or return its error. OC_TRY_VOID(expr) for Result<void>.
#define OC_TRY(name, expr)                                                      \
  auto name##_result = (expr);                                                  \
  if (!name##_result) return ::overcap::Fail(std::move(name##_result).error()); \
  auto name = std::move(*name##_result)
#define OC_TRY_VOID(expr)                                                   \
  do {                                                                      \
    auto oc_result_ = (expr);                                               \
    if (!oc_result_) return ::overcap::Fail(std::move(oc_result_).error()); \
  } while (false)
