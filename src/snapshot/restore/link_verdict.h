// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "snapshot/restore/survey.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

// After all files are judged: which hard links are right, and which files must be made anew because they are
// one with a file that they should not be one with, or because their attributes would change under another
// name too. Pure.
void JudgeLinks(const WantedTree& tree, Survey* survey);

}  // namespace overcap
