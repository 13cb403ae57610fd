// SPDX-License-Identifier: Apache-2.0
#include "stores/object_size.h"

#include "base/text.h"
#include "base/units.h"

namespace overcap {

Result<void> CheckObjectSize(std::string_view key, int64_t size, int64_t most) {
  if (size < 0) return Fail(ErrorCode::kUsage, StrCat(Quoted(key, 200), " cannot have ", size, " bytes"));
  if (size <= most) return {};
  return Fail(ErrorCode::kUsage, StrCat(Quoted(key, 200), " is said to have ", size, " bytes; at most ",
                                        FormatBytes(most), " are possible"));
}

}  // namespace overcap
