// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace overcap {

std::string OwnProgram();  // this program's own file, absolute; "" when the kernel does not tell

}  // namespace overcap
