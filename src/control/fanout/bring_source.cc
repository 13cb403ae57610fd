// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/bring_source.h"

#include "base/text.h"
#include "control/fanout/fanout_source.h"
#include "stores/all_stores.h"
#include "sys/posix_files.h"

namespace overcap {

Result<SourceFolder> BringObjects(const Store& from, const std::string& root, TransferOptions options) {
  const std::string folder = FanoutStateOf(root, from.Location()) + "/folder";
  OC_TRY_VOID(PosixFiles().MakeFolders(folder));
  StoreLocation location;
  location.path = folder;
  OC_TRY(to, OpenStore(location, {}, {.create = true, .keys = KeyRule::kAny, .durable = false}));
  options.remove_extra = true;
  OC_TRY(report, TransferAll(from, *to, options));
  if (report.stopped) return Fail(ErrorCode::kConflict, "stopped");
  if (report.failed > 0) {
    Error error = report.problems.empty() ? Error{ErrorCode::kUnavailable, "", ""} : report.problems[0].error;
    error.message = StrCat(CountOf(report.failed, "object"), " of ", Quoted(from.Location(), 300),
                           " could not be fetched: ", error.message);
    return Fail(std::move(error));
  }
  return SourceFolder{folder, {}};
}

Result<SourceFolder> BringSnapshot(const Repository& repository, const NamedSnapshot& snapshot,
                                   const std::string& root,
                                   std::function<void(const RestoreProgress&)> progress,
                                   const std::atomic<bool>* stop) {
  const std::string state =
      FanoutStateOf(root, StrCat(repository.config().id, " ", snapshot.record.workspace));
  OC_TRY_VOID(PosixFiles().MakeFolders(state + "/folder"));
  RestoreRequest request;
  request.tree = snapshot.record.tree;
  request.target = state + "/folder";
  request.remove_extra = true;
  request.seen_file = state + "/folder-seen";
  request.progress = std::move(progress);
  request.stop = stop;
  OC_TRY(report, Restore(repository, request));
  if (report.failed > 0) {
    const RestoreProblem first = report.problems.empty() ? RestoreProblem{} : report.problems[0];
    return Fail(ErrorCode::kCorrupt,
                StrCat(CountOf(report.failed, "file"), " of the snapshot could not be brought here: ",
                       Quoted(first.path, 200), ": ", first.what));
  }
  return SourceFolder{request.target, {snapshot.record.folder}};
}

}  // namespace overcap
