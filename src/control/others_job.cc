// SPDX-License-Identifier: Apache-2.0
#include "control/others_job.h"

#include "base/text.h"
#include "sys/user.h"

namespace overcap {

Result<void> CheckNotOthers(const JobRecord& record) {
  const bool bare = record.dir.empty() && record.spec.command.empty();
  if (!bare || record.spec.user.empty() || record.spec.user == UserName()) return {};
  return Fail(ErrorCode::kDenied, StrCat("job '", record.spec.id, "' belongs to user '", record.spec.user,
                                         "', who alone can read its logs and code"));
}

}  // namespace overcap
