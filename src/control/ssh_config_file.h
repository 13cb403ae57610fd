// SPDX-License-Identifier: Apache-2.0
// The files of ssh's configuration in a home folder: Overcap's own, ~/.ssh/overcap/config, and the user's.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "control/ssh_config.h"

namespace overcap {

std::string OwnSshConfig(const std::string& home);  // its path

// The entries that it has; none when it does not exist or cannot be read.
std::vector<SshEntry> ReadSshEntries(const std::string& home);

// Puts the entry in, or in the place of the one of the same allocation. Readers see the old text or the new.
Result<void> WriteSshHost(const std::string& home, const SshHost& host);
// Removes those entries for which `gone` says so; the file too when nothing is left in it.
Result<void> RemoveSshHosts(const std::string& home, const std::function<bool(const SshEntry&)>& gone);

struct SshInstall {
  std::string file;      // the user's configuration
  std::string backup;    // its copy as it was; "" when there was none
  bool changed = false;  // false: it had the line already
};
// Adds the Include to ~/.ssh/config: at its top, after a copy was made, and only when it is not there. A link
// is followed, the file's mode stays. After an error nothing has changed.
Result<SshInstall> InstallSshInclude(const std::string& home);
bool SshIncludeInstalled(const std::string& home);

}  // namespace overcap
