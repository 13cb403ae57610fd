// SPDX-License-Identifier: Apache-2.0
#include "sys/own_host_name.h"

#include <limits.h>
#include <unistd.h>

namespace overcap {

std::string OwnHostName() {
  char name[HOST_NAME_MAX + 1] = "";
  return gethostname(name, sizeof name - 1) == 0 ? name : "";
}

}  // namespace overcap
