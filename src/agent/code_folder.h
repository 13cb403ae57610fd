// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "agent/attempt_folder.h"
#include "base/result.h"
#include "model/job_spec.h"
#include "snapshot/store.h"
#include "sys/supervisor.h"

namespace overcap {

// Where the attempt's copy of the code stands. Tasks of an array share it, unless they need different links
// in it.
std::string CodeFolder(const JobSpec& spec, const AttemptFolder& attempt);

// Makes a folder from captured code; it appears complete or not at all.
using CodeCopier = std::function<Result<void>(const std::string& tree, const std::string& to)>;

// Makes the attempt's copy of the captured code, if the job has any, and returns the folder in which its
// ranks start. The agents of an array share one copy: the first makes it, the others wait for it kConflict
// when `supervisor` is told to stop meanwhile.
Result<std::string> PrepareFolder(const JobSpec& spec, const AttemptFolder& attempt, const CodeCopier& copy,
                                  Supervisor* supervisor);
CodeCopier CopyFromStore(const SnapshotStore& store, Supervisor* supervisor);

}  // namespace overcap
