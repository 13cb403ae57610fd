// SPDX-License-Identifier: Apache-2.0
#include "sys/own_program.h"

#include <unistd.h>

namespace overcap {

std::string OwnProgram() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return {path, size > 0 ? static_cast<size_t>(size) : 0};
}

}  // namespace overcap
