// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/same_object.h"

#include <array>

namespace overcap {
namespace {

// SFTP and object stores have whole seconds; times before 1970 round down too.
int64_t Second(int64_t us) {
  return us / 1'000'000 - (us % 1'000'000 < 0 ? 1 : 0);
}

}  // namespace

std::string_view CopyVerdictText(CopyVerdict verdict) {
  constexpr std::array<std::string_view, 8> kTexts = {"the same",        "new",          "another size",
                                                      "another content", "another time", "compared",
                                                      "compared",        "asked for"};
  return kTexts[static_cast<size_t>(verdict)];
}

CopyVerdict JudgeCopy(const StoredObjectInfo& from, const StoredObjectInfo* to, const SameRules& rules) {
  if (to == nullptr) return CopyVerdict::kNew;
  if (rules.all) return CopyVerdict::kAsked;
  if (from.size != to->size) return CopyVerdict::kSize;
  if (rules.checksum) return CopyVerdict::kRead;
  if (!from.md5.empty() && !to->md5.empty())
    return from.md5 == to->md5 ? CopyVerdict::kSame : CopyVerdict::kContent;
  if (rules.keeps_times)
    return Second(from.modified_us) == Second(to->modified_us) ? CopyVerdict::kSame : CopyVerdict::kTime;
  const int64_t written = Second(from.modified_us), copied = Second(to->modified_us);
  if (written > copied) return CopyVerdict::kTime;
  // An older file may have been put in this one's place after the copy: tar and rsync set times back.
  return written < copied && Second(from.changed_us) > copied ? CopyVerdict::kSum : CopyVerdict::kSame;
}

}  // namespace overcap
