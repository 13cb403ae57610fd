// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/follow_job.h"

#include "base/text.h"
#include "cli/commands/job_words.h"
#include "control/job_exit_status.h"

namespace overcap::cli {
namespace {

constexpr int64_t kSliceSeconds = 3600;

std::string DetachHint(const std::string& id) {
  return StrCat("detached; job '", id, "' goes on. overcap logs -f ", id, " follows it, overcap abort ", id,
                " stops it");
}

int Finish(World& world, const JobRecord& record) {
  if (world.out().json()) {
    PrintRecordJson(world, record);
  } else {
    world.out().Note(StrCat("job '", record.spec.id, "' ", StateText(record, world.clock().WallUs())));
  }
  return JobExitStatus(record);
}

}  // namespace

Result<int> FollowJob(World& world, Cluster& cluster, const std::string& id, const LogRequest& request) {
  if (world.out().json()) return WaitForJob(world, cluster, id);
  OC_TRY_VOID(world.out().Flush());
  DetachOnInterrupt(DetachHint(id));
  bool at_line_start = true;
  const LogSink sink = [&](std::string_view bytes) {
    if (bytes.empty()) {
      (void)world.out().Flush();
      return;
    }
    world.out().Write(bytes);
    at_line_start = bytes.back() == '\n';
  };
  const auto on_attempt = [&](int attempt) { world.out().Note(StrCat("attempt ", attempt, " begins")); };
  OC_TRY(record, FollowLogs(cluster, id, request, sink, on_attempt));
  if (!at_line_start && world.out().terminal().out_is_terminal) world.out().Write("\n");
  OC_TRY_VOID(world.out().Flush());
  return Finish(world, record);
}

Result<int> WaitForJob(World& world, Cluster& cluster, const std::string& id) {
  OC_TRY_VOID(world.out().Flush());
  DetachOnInterrupt(DetachHint(id));
  while (true) {
    OC_TRY(done, cluster.Wait({id}, WaitUntil::kEnded, kSliceSeconds));
    if (done) break;
  }
  OC_TRY(records, cluster.Query({id}));
  return Finish(world, records.front());
}

}  // namespace overcap::cli
