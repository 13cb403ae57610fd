// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/text.h"
#include "control/file_lock.h"
#include "control/promise_record.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr int64_t kMostBytes = 2 << 20, kKeptBytes = 1 << 20;
constexpr int64_t kReadBytes = 2 * kMostBytes;  // whoever made it larger
constexpr int64_t kSameUs = 60'000'000;
constexpr std::chrono::milliseconds kPatience{2000};
constexpr size_t kMostAsked = 500;

// The last bytes of a text that begin with a whole line.
std::string_view LastLines(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  text.remove_prefix(text.size() - most);
  const size_t end = text.find('\n');
  return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

bool SaysTheSame(const StartPromise& a, const StartPromise& b) {
  return a.cluster == b.cluster && a.job == b.job && std::abs(a.p50_us - b.p50_us) < kSameUs &&
         std::abs(a.p90_us - b.p90_us) < kSameUs;
}

}  // namespace

Result<std::vector<KeptPromise>> PromiseFile::Load() const {
  PosixFiles files;
  if (!files.Exists(path_)) return std::vector<KeptPromise>();
  OC_TRY(text, files.ReadRange(path_, 0, kReadBytes));
  return ReadPromises(text);
}

Result<void> PromiseFile::Append(const std::string& lines) {
  PosixFiles files;
  const bool fresh = !files.Exists(path_);
  if (!fresh) {
    OC_TRY(text, files.ReadRange(path_, 0, kReadBytes));
    if (static_cast<int64_t>(text.size()) > kMostBytes)
      OC_TRY_VOID(files.WriteAtomic(path_, LastLines(text, static_cast<size_t>(kKeptBytes)), true));
  }
  OC_TRY(file, files.OpenAppend(path_));
  std::string whole = lines;
  if (file->Size() > 0) {
    OC_TRY(last, files.ReadRange(path_, file->Size() - 1, 1));
    if (last != "\n") whole.insert(0, "\n");
  }
  OC_TRY_VOID(file->Append(whole));
  OC_TRY_VOID(file->Sync());
  return fresh ? files.SyncFolder(path_.substr(0, path_.rfind('/'))) : Result<void>();
}

Result<void> PromiseFile::Add(const StartPromise& promise) {
  PosixFiles files;
  OC_TRY_VOID(files.MakeFolders(path_.substr(0, path_.rfind('/'))));
  OC_TRY(lock, LockFile(lock_, kPatience));
  OC_TRY(kept, Load());
  const auto last = std::find_if(kept.rbegin(), kept.rend(), [&](const KeptPromise& one) {
    return one.promise.cluster == promise.cluster && one.promise.job == promise.job;
  });
  if (last != kept.rend() && !last->outcome && SaysTheSame(last->promise, promise)) return {};
  return Append(PromiseLine(promise));
}

Result<void> PromiseFile::Add(const std::vector<PromiseOutcome>& outcomes) {
  if (outcomes.empty()) return {};
  OC_TRY(lock, LockFile(lock_, kPatience));
  std::string lines;
  for (const PromiseOutcome& outcome : outcomes) lines += OutcomeLine(outcome);
  return Append(lines);
}

Result<void> SettlePromises(Cluster& cluster, const std::string& name, PromiseFile* file, int64_t now_us) {
  OC_TRY(kept, file->Load());
  std::vector<PromiseOutcome> outcomes;
  std::vector<std::string> asked;
  for (const KeptPromise& one : kept) {
    const StartPromise& promise = one.promise;
    if (one.outcome || promise.cluster != name || asked.size() >= kMostAsked) continue;
    if (std::find(asked.begin(), asked.end(), promise.job) != asked.end()) continue;
    asked.push_back(promise.job);
    const auto records = cluster.Query({promise.job});
    if (!records && records.error().code != ErrorCode::kNotFound) return Fail(records.error());
    // One that is not known any longer tells nothing: it does not count.
    auto outcome = records && !records->empty()
                       ? OutcomeOf(promise, records->front(), now_us)
                       : std::optional(PromiseOutcome{name, promise.job, 0, promise.made_us, now_us});
    if (outcome) outcomes.push_back(*std::move(outcome));
  }
  return file->Add(outcomes);
}

}  // namespace overcap
