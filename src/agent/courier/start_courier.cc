// SPDX-License-Identifier: Apache-2.0
#include "agent/courier/start_courier.h"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_scan.h"
#include "base/text.h"
#include "model/agent_report.h"
#include "snapshot/sha256.h"
#include "sys/posix_files.h"

namespace overcap {

std::string LocalPartOf(const std::string& store_dir, const JobStore& store) {
  const std::string root = store_dir.substr(0, store_dir.rfind('/'));
  return StrCat(root, "/remote/", Sha256Of(JobStoreToJson(store)).Hex().substr(0, 16));
}

std::optional<Courier> CourierFor(const AgentOptions& options) {
  const auto spec = PosixFiles().Read(options.job_dir + "/spec.json");
  const std::string_view member = spec ? JsonMember(*spec, "store") : std::string_view();
  if (member.empty()) return std::nullopt;
  auto via = JobStoreFromJson(member);
  if (!via) return std::nullopt;
  CourierOptions wanted;
  wanted.job_dir = options.job_dir;
  wanted.store_dir = LocalPartOf(options.store_dir, *via);
  wanted.via = *std::move(via);
  auto started = Courier::Start(wanted);
  if (!started) return std::nullopt;
  return *std::move(started);
}

Result<void> MakeNodeFolder(const std::string& folder) {
  struct stat info {};
  if (mkdir(folder.c_str(), 0700) != 0 && errno == ENOENT) OC_TRY_VOID(PosixFiles().MakeFolders(folder));
  if (lstat(folder.c_str(), &info) != 0) return Fail(ErrnoError(errno, StrCat("cannot make '", folder, "'")));
  if (S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0) return {};
  return Fail(ErrorCode::kDenied,
              StrCat("'", folder, "' is not this user's own folder, or others may look into it"),
              StrCat("chmod 700 ", folder, ", or set 'node_folder' of the cluster"));
}

Result<Courier> StartOnNode(const AgentOptions& options) {
  OC_TRY_VOID(MakeNodeFolder(options.node_folder));
  OC_TRY_VOID(PosixFiles().MakeFolders(options.job_dir));
  return Courier::Start({options.job_dir, options.store_dir, options.via, true, options.backlog});
}

void DrainCourier(Courier* courier, int64_t seconds, int64_t now_us, ReportFile* report, Ending* ending) {
  const CourierRest rest = courier->Drain(seconds);
  if (rest.empty()) return;
  report->WriteIfRoom(NoteLine(now_us, rest.Text()));
  ending->reason += StrCat(ending->reason.empty() ? "" : "; ", rest.Text());
}

}  // namespace overcap
