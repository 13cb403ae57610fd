// SPDX-License-Identifier: Apache-2.0
// Reads files that are there already to see whether they are right.
#pragma once

#include <functional>

#include "snapshot/format/content_map.h"
#include "snapshot/restore/folder_fds.h"
#include "snapshot/restore/survey.h"
#include "snapshot/restore/wanted_tree.h"

namespace overcap {

// Settles every entry whose state is kRead, on `request.threads` threads. A file that cannot be read, or that
// changes meanwhile, is to be replaced. `over` says when to give up.
void CheckContents(const WantedTree& tree, const TargetFolder& target, const SurveyRequest& request,
                   const GetMeta& get, const std::function<bool()>& over, Survey* survey);

}  // namespace overcap
