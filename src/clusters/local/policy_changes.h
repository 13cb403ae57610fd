// SPDX-License-Identifier: Apache-2.0
// What is another in one policy than in another one, in words: one line for each thing. Pure.
#pragma once

#include <string>
#include <vector>

#include "model/policy/policy.h"

namespace overcap {

// `now` may be null: there is none yet. Never empty: where only the text differs (comments, order), it says
// so.
std::vector<std::string> PolicyChanges(const Policy* now, const Policy& wanted);

}  // namespace overcap
