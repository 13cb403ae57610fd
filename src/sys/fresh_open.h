// SPDX-License-Identifier: Apache-2.0
// Opens what another host may have made, replaced or removed a moment ago. A client of a network file system
// believes for half a minute that a name is missing once it was, and opens a file that it knows without a
// question to the server; it asks when the folder is opened, or a name is looked at that turned out stale.
#pragma once

#include <string>
#include <sys/types.h>

#include "sys/fd.h"

namespace overcap {

// Whether files there are cached by each host that uses them, for reading and for writing: NFS and SMB. File
// systems of clusters (Lustre, GPFS, BeeGFS) show to all what one has written.
bool HostsKeepCaches(int fd);
bool HostsKeepCaches(const std::string& path);

// How often what is stale (ESTALE) is tried anew: somebody may replace it again meanwhile.
constexpr int kStaleTries = 10;

// open() again after EINTR, closed on exec. `root`: what a relative path is below, or AT_FDCWD.
Fd OpenRetrying(int root, const std::string& path, int flags, mode_t mode = 0);
// The same, and the server is asked before "not there" is believed.
Fd OpenFresh(int root, const std::string& path, int flags);
// Makes the client ask the server what is at `path`: it was ESTALE.
void AskAnew(int root, const std::string& path);
// Makes the client ask the server for the folder that `path` is in, and for those above that it believes
// missing. Whether it is there.
bool AskForFolder(int root, const std::string& path);

}  // namespace overcap
