// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

// Where in the file system a process stands in one hierarchy of control groups.
struct CgroupPlace {
  std::string mount;   // the top of what can be seen
  std::string folder;  // its own group: the mount or below
  bool operator==(const CgroupPlace&) const = default;

  // `folder` and all above it up to the mount.
  std::vector<std::string> Upwards() const;
};

struct CgroupPlaces {
  CgroupPlace v2;                         // empty where there is no v2
  std::map<std::string, CgroupPlace> v1;  // by controller: "memory", "cpuset", "freezer", ...
};

// From the text of /proc/PID/cgroup and /proc/PID/mountinfo. Groups outside of what is mounted are left out.
CgroupPlaces ParseCgroupPlaces(std::string_view cgroup, std::string_view mountinfo);

// Of this process.
CgroupPlaces OwnCgroupPlaces();

}  // namespace overcap
