// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/overlap.h"

#include "base/text.h"

namespace overcap {
namespace {

// The same place gives the same text; with a '/' at its end.
std::string Comparable(const StoreLocation& location) {
  std::string clean = location.kind == StoreKind::kFolder ? "/" : "";
  for (const std::string& part : Split(location.Text(), '/')) {
    if (part.empty() || part == ".") continue;
    if (part == ".." && clean.size() > 1) {
      clean.resize(clean.rfind('/', clean.size() - 2) + 1);
      continue;
    }
    clean += part + "/";
  }
  return clean;
}

}  // namespace

Result<void> RefuseOverlap(const StoreLocation& from, const StoreLocation& to, bool remove_extra) {
  if (from.kind != to.kind) return {};
  const std::string a = Comparable(from), b = Comparable(to);
  if (a == b) return Fail(ErrorCode::kUsage, StrCat(Quoted(to.Text(), 300), " is what would be copied"));
  if (b.starts_with(a))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(from.Text(), 300), " cannot be copied into itself"));
  if (remove_extra && a.starts_with(b))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(from.Text(), 300), " is part of ", Quoted(to.Text(), 300),
                                          " and would be removed"));
  return {};
}

}  // namespace overcap
