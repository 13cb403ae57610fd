// SPDX-License-Identifier: Apache-2.0
#include "control/fanout/pull_store.h"

#include <set>
#include <string>

#include "base/text.h"
#include "control/fanout/fanout_source.h"
#include "control/fanout/fanout_target.h"
#include "control/fanout/listed_store.h"
#include "control/fanout/tidy_folder.h"
#include "control/transfer/transfer.h"
#include "stores/all_stores.h"
#include "stores/object_size.h"
#include "sys/own_host_name.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kRetryUs = 30'000'000;  // then the head may try it

class StorePull {
 public:
  StorePull(const fanout::Pull& pull, const std::vector<fanout::ListedObject>& listing, NodeUplink* uplink)
      : pull_(pull), listing_(listing), uplink_(*uplink) {}

  Result<void> Run() {
    if (pull_.protocol != fanout::kProtocol)
      return Fail(ErrorCode::kConflict, "the head of the fan-out speaks another protocol");
    OC_TRY(target, FanoutTarget::Take(pull_.target, pull_.force));
    std::set<std::string> keys;
    for (const fanout::ListedObject& object : listing_) keys.insert(object.key);
    OC_TRY_VOID(TidyFolder(target.path, keys, Partials::kStay));
    for (const std::string& path : target.Fixed()) OC_TRY_VOID(PosixFiles().Remove(target.path + "/" + path));
    OC_TRY(report, Copy(target));
    if (report.failed > 0) {
      uplink_.Send(fanout::NotPulled{Why(report)});
      return {};
    }
    OC_TRY_VOID(TidyFolder(target.path, keys, Partials::kGo));
    return Describe(target, report);
  }

 private:
  Result<TransferReport> Copy(const FanoutTarget& target) {
    ListedStore::Settings settings{pull_.location, ""};
    settings.tuning.retry.deadline_us = kRetryUs;
    if (!pull_.ca.empty()) {
      settings.ca_file = target.Local("ca.pem");
      OC_TRY_VOID(PosixFiles().WriteAtomic(settings.ca_file, pull_.ca, false));
    }
    std::vector<StoredObjectInfo> objects;
    TransferProgress all;
    for (const fanout::ListedObject& object : listing_) {
      OC_TRY_VOID(CheckObjectSize(object.key, object.size));
      objects.push_back({object.key, object.size, object.modified_us, object.version, object.md5});
      all.bytes_total += object.size;
    }
    const ListedStore from(
        std::move(objects), [this](const std::string& key) { return uplink_.UrlOf(key); }, settings);
    StoreLocation location;
    location.path = target.path;
    OC_TRY(to, OpenStore(location, {}, {.keys = KeyRule::kAny, .private_files = false, .durable = false}));
    TransferOptions options;
    options.stop = uplink_.gone();
    options.progress = [this, all](const TransferProgress& progress) {
      uplink_.Send(fanout::Progress{progress.bytes_done, all.bytes_total});
    };
    OC_TRY(report, TransferAll(from, *to, options));
    if (report.stopped) return Fail(ErrorCode::kConflict, "stopped");
    return report;
  }

  static Error Why(const TransferReport& report) {
    if (report.problems.empty()) return {ErrorCode::kUnavailable, "the store cannot be read", ""};
    for (const TransferProblem& problem : report.problems) {
      if (problem.error.code == ErrorCode::kConflict) return problem.error;
    }
    return report.problems[0].error;
  }

  Result<void> Describe(const FanoutTarget& target, const TransferReport& report) {
    SourceRequest request;
    request.folder = target.path;
    request.host = OwnHostName();
    request.stop = uplink_.gone();
    OC_TRY(source, DescribeFolder(request, target.path + "/.overcap/fanout"));
    if (source.unread > 0)
      return Fail(ErrorCode::kUnavailable, StrCat(CountOf(source.unread, "file"), " in ",
                                                  Quoted(target.path, 300), " cannot be read"));
    for (fanout::Object& object : source.objects) uplink_.Send(std::move(object));
    uplink_.Send(
        fanout::Known{source.tree.Hex(), source.files, source.bytes, report.copied, report.copied_bytes});
    return {};
  }

  const fanout::Pull& pull_;
  const std::vector<fanout::ListedObject>& listing_;
  NodeUplink& uplink_;
};

}  // namespace

Result<void> PullStore(const fanout::Pull& pull, const std::vector<fanout::ListedObject>& listing,
                       NodeUplink* uplink) {
  return StorePull(pull, listing, uplink).Run();
}

}  // namespace overcap
