// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace overcap {

// What `work` says, done in a process of its own; "died by signal 9" when it was killed, as the work may ask
// for.
std::string RunInChild(const std::function<std::string()>& work);

// In a child: a file system in memory of this size at `folder`, for this process only. False when that cannot
// be had.
bool MountSmall(const std::string& folder, const std::string& size);
bool ResizeSmall(const std::string& folder, const std::string& size);

}  // namespace overcap
