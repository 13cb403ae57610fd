// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace overcap {

std::string OwnHostName();  // as gethostname() says

// Names this machine in files that several machines may share: "NAME/MACHINE-ID". NAME is OVERCAP_HOST, else
// the host's name; MACHINE-ID is the content of /etc/machine-id, empty where there is none. The same after a
// reboot.
const std::string& OwnHost();
std::string_view HostNameIn(std::string_view host);  // NAME

}  // namespace overcap
