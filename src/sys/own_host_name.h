// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace overcap {

std::string OwnHostName();  // as gethostname() says

}  // namespace overcap
