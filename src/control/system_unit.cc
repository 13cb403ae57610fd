// SPDX-License-Identifier: Apache-2.0
#include "control/system_unit.h"

#include "base/text.h"

namespace overcap {

std::string SystemUnit(const std::string& binary, const std::string& words) {
  return StrCat(R"([Unit]
Description=Overcap: the queue of this machine
After=local-fs.target nss-user-lookup.target network.target
Wants=nss-user-lookup.target

[Service]
Type=simple
ExecStart=)",
                binary, " daemon --system", words, R"(
Restart=always
RestartSec=1
# Jobs outlive the engine: only the engine itself is stopped, and it finds them again.
KillMode=process
# The engine makes a control group for each job below its own.
Delegate=yes
RuntimeDirectory=overcap
RuntimeDirectoryMode=0755
RuntimeDirectoryPreserve=yes
StateDirectory=overcap
StateDirectoryMode=0711
# What jobs may have that say nothing; each gets the limits of its submitter.
LimitNOFILE=1048576
TasksMax=infinity
OOMPolicy=continue

[Install]
WantedBy=multi-user.target)");
}

}  // namespace overcap
