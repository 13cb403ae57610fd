// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/picture_words.h"

#include "base/text.h"

namespace overcap::cli {

Result<ClusterPicture> Look(World& world, const PictureAges& ages) {
  OC_TRY(cluster, world.GetCluster());
  return LookAt(*cluster, ages, world.clock().WallUs());
}

std::string PictureNotes(const ClusterPicture& picture, int64_t now_us, bool watched) {
  std::string text;
  if (watched || !picture.stale.empty()) text += StrCat(AgeText(picture, now_us), "\n");
  for (const std::string& note : picture.notes) text += StrCat("not known: ", note, "\n");
  return text;
}

}  // namespace overcap::cli
