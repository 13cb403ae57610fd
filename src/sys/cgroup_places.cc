// SPDX-License-Identifier: Apache-2.0
#include "sys/cgroup_places.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

struct Mount {
  std::string root;  // which group stands at the top
  std::string point;
  std::string type;  // cgroup or cgroup2
  std::vector<std::string> controllers;
};

// mountinfo writes blanks and the like as \040.
std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out.push_back(
          static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

std::optional<Mount> ParseMount(std::string_view line) {
  const size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const std::vector<std::string> left = Split(line.substr(0, dash), ' ');
  const std::vector<std::string> right = Split(line.substr(dash + 3), ' ');
  if (left.size() < 5 || right.size() < 3 || !right[0].starts_with("cgroup")) return std::nullopt;
  return Mount{Unescape(left[3]), Unescape(left[4]), right[0], Split(right[2], ',')};
}

std::optional<CgroupPlace> PlaceIn(const Mount& mount, std::string_view group) {
  std::string_view below = group;
  if (mount.root != "/") {
    if (!group.starts_with(mount.root)) return std::nullopt;
    below.remove_prefix(mount.root.size());
    if (!below.empty() && below[0] != '/') return std::nullopt;
  }
  if (below == "/") below = "";
  if (below.starts_with("/..")) return std::nullopt;
  return CgroupPlace{mount.point, StrCat(mount.point, below)};
}

bool Holds(const Mount& mount, const std::string& controller) {
  if (controller.empty()) return mount.type == "cgroup2";
  return mount.type == "cgroup" &&
         std::find(mount.controllers.begin(), mount.controllers.end(), controller) != mount.controllers.end();
}

}  // namespace

std::vector<std::string> CgroupPlace::Upwards() const {
  std::vector<std::string> folders;
  std::string each = folder;
  while (each.size() > mount.size()) {
    folders.push_back(each);
    each.resize(each.rfind('/'));
  }
  if (!mount.empty()) folders.push_back(mount);
  return folders;
}

CgroupPlaces ParseCgroupPlaces(std::string_view cgroup, std::string_view mountinfo) {
  std::vector<Mount> mounts;
  for (const std::string& line : Split(mountinfo, '\n')) {
    if (auto mount = ParseMount(line)) mounts.push_back(std::move(*mount));
  }
  CgroupPlaces places;
  for (const std::string& line : Split(cgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    for (const std::string& controller : Split(line.substr(first + 1, second - first - 1), ',')) {
      for (const Mount& mount : mounts) {
        if (!Holds(mount, controller)) continue;
        const auto place = PlaceIn(mount, line.substr(second + 1));
        if (place) (controller.empty() ? places.v2 : places.v1[controller]) = *place;
      }
    }
  }
  return places;
}

CgroupPlaces OwnCgroupPlaces() {
  const PosixFiles files;
  return ParseCgroupPlaces(files.Read("/proc/self/cgroup").value_or(""),
                           files.Read("/proc/self/mountinfo").value_or(""));
}

}  // namespace overcap
