// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/transfer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "base/text.h"
#include "control/transfer/copy_crew.h"
#include "control/transfer/key_stream.h"

namespace overcap {
namespace {

SameRules RulesFor(const Store& to, const TransferOptions& options) {
  return {.keeps_times = to.KeepsTimes(), .checksum = options.checksum, .all = options.all};
}

bool Stopped(const TransferOptions& options) {
  return options.stop != nullptr && *options.stop;
}

void Tell(const TransferOptions& options, TransferStep step) {
  if (options.step) options.step(step);
}

// What is to be done with one object of the source. False: no more is of use.
bool Handle(KeyPair* pair, const SameRules& rules, const TransferOptions& options, CopyCrew* crew) {
  StoredObjectInfo& from = *pair->left;
  const CopyVerdict verdict = JudgeCopy(from, pair->right ? &*pair->right : nullptr, rules);
  if (verdict == CopyVerdict::kSame) {
    crew->CountSame(from.size);
    return true;
  }
  CopyTask task{from, from.key};
  if (verdict == CopyVerdict::kRead || verdict == CopyVerdict::kSum)
    return crew->CopyIfOther(std::move(task), std::move(*pair->right));
  if (options.dry_run && !crew->Foresee(task)) return true;
  Tell(options, {TransferStep::Kind::kCopy, from.key, from.size, verdict});
  return options.dry_run || crew->Copy(std::move(task));
}

Error NothingToKeep(const Store& from) {
  return {ErrorCode::kConflict,
          StrCat("there is nothing in ", Quoted(from.Location(), 200),
                 ": all of the destination would be removed"),
          "if that is meant: 'overcap store rm -r' of the destination"};
}

Result<void> RefuseEmptySource(const Store& from, const TransferOptions& options) {
  if (!options.remove_extra) return {};
  KeyStream stream(from);
  OC_TRY(first, stream.Peek());
  if (first == nullptr) return Fail(NothingToKeep(from));
  return {};
}

// Looks again at both sides, so that no list of what is too much has to be kept in memory.
Result<void> RemoveExtra(KeyStream* left, KeyStream* right, CopyCrew* crew) {
  OC_TRY_VOID(left->BeginAgain());
  OC_TRY_VOID(right->BeginAgain());
  return VisitPairs(
      left, right, [] {}, [&](KeyPair* pair) { return pair->left || crew->Remove(pair->right->key); });
}

// Lists of services may leave out entries while others are removed, or name for a while what is gone: they
// are asked for until they are empty.
enum class Removal { kNothing, kSome, kStale };
constexpr int kMostStale = 4;
constexpr std::chrono::milliseconds kStalePause(500);

Error StillListed(const Store& store, const std::string& key) {
  return {
      ErrorCode::kUnavailable,
      StrCat(Quoted(key, 200), " was removed, but the service of ", Quoted(store.Location(), 200),
             " still lists it"),
      "if it stays so, the service does not tell the name as it is: remove it with the service's own tools"};
}

// Removes what is listed. kStale, without removing anything, when the list begins with the key `first`, as
// the one before did.
Result<Removal> RemoveListed(KeyStream* stream, const TransferOptions& options, CopyCrew* crew,
                             std::optional<std::string>* first) {
  Removal removal = Removal::kNothing;
  while (!Stopped(options)) {
    OC_TRY(object, stream->Peek());
    if (object == nullptr) break;
    if (removal == Removal::kNothing && object->key == *first) return Removal::kStale;
    if (removal == Removal::kNothing) *first = object->key;
    removal = Removal::kSome;
    Tell(options, {TransferStep::Kind::kRemove, object->key, object->size, CopyVerdict::kNew});
    if (!options.dry_run && !crew->Remove(object->key)) break;
    stream->Pop();
  }
  return removal;
}

}  // namespace

std::string_view ProofKindName(ProofKind kind) {
  constexpr std::array<std::string_view, kProofKinds> kNames = {"nothing", "md5", "md5_of_parts",
                                                                "md5_of_ranges", "service"};
  return kNames[static_cast<size_t>(kind)];
}

Result<TransferReport> TransferAll(const Store& from, Store& to, const TransferOptions& options) {
  OC_TRY_VOID(RefuseEmptySource(from, options));
  TransferReport report;
  CopyCrew crew(from, to, options, &report);
  const SameRules rules = RulesFor(to, options);
  KeyStream left(from), right(to);
  int64_t extra = 0;
  TransferReport before;  // what was copied before the lists came once more, and is the same then
  const auto begin_again = [&] {
    crew.Drain();
    before = report;
    report.same = report.same_bytes = report.failed = extra = 0;
    report.problems.clear();
  };
  OC_TRY_VOID(VisitPairs(&left, &right, begin_again, [&](KeyPair* pair) {
    if (Stopped(options)) return false;
    if (pair->left) return Handle(pair, rules, options, &crew);
    ++extra;
    if (options.remove_extra && options.dry_run)
      Tell(options, {TransferStep::Kind::kRemove, pair->right->key, pair->right->size, CopyVerdict::kNew});
    return true;
  }));
  crew.ListingDone();
  crew.Drain();
  const bool well = report.failed == 0 && !report.stopped && !Stopped(options);
  const bool removes = options.remove_extra && !options.dry_run && well && extra > 0;
  report.left_out = left.left_out();
  if (removes) OC_TRY_VOID(RemoveExtra(&left, &right, &crew));
  crew.Drain();
  if (!options.all) {
    report.same = std::max<int64_t>(report.same - before.copied, 0);
    report.same_bytes = std::max<int64_t>(report.same_bytes - before.copied_bytes, 0);
  }
  report.extra = removes ? 0 : extra;
  report.stopped = report.stopped || Stopped(options);
  if (options.flush && !options.dry_run) OC_TRY_VOID(to.Flush());
  return report;
}

Result<TransferReport> TransferToNowhere(const Store& from, const TransferOptions& options) {
  TransferReport report;
  KeyStream stream(from);
  while (!Stopped(options)) {
    OC_TRY(object, stream.Peek());
    if (object == nullptr) break;
    Tell(options, {TransferStep::Kind::kCopy, object->key, object->size, CopyVerdict::kNew});
    stream.Pop();
  }
  report.left_out = stream.left_out();
  report.stopped = Stopped(options);
  return report;
}

Result<TransferReport> TransferOne(const Store& from, const std::string& key, Store& to,
                                   const std::string& to_key, const TransferOptions& options) {
  OC_TRY(source, from.Stat(key));
  Result<StoredObjectInfo> there = to.Stat(to_key);
  if (!there && there.error().code != ErrorCode::kNotFound) return Fail(there.error());
  TransferReport report;
  CopyCrew crew(from, to, options, &report);
  const CopyVerdict verdict = JudgeCopy(source, there ? &*there : nullptr, RulesFor(to, options));
  CopyTask task{source, to_key};
  if (verdict == CopyVerdict::kSame) {
    crew.CountSame(source.size);
  } else if (verdict == CopyVerdict::kRead || verdict == CopyVerdict::kSum) {
    crew.CopyIfOther(std::move(task), std::move(*there));
  } else if (!options.dry_run || crew.Foresee(task)) {
    Tell(options, {TransferStep::Kind::kCopy, key, source.size, verdict});
    if (!options.dry_run) crew.Copy(std::move(task));
  }
  crew.ListingDone();
  crew.Drain();
  report.stopped = report.stopped || Stopped(options);
  if (options.flush && !options.dry_run) OC_TRY_VOID(to.Flush());
  return report;
}

Result<TransferReport> RemoveAll(Store& store, const std::string& prefix, const TransferOptions& options) {
  TransferReport report;
  CopyCrew crew(store, store, options, &report);
  KeyStream stream(store, prefix);
  std::optional<std::string> first;  // of the list before, when all of that was removed
  int stale = 0;
  while (true) {
    const int64_t removed = report.removed;
    const Result<Removal> removal = RemoveListed(&stream, options, &crew, &first);
    crew.Drain();
    const bool ends = options.dry_run || Stopped(options) || report.failed > 0 || !store.ChecksPuts();
    if (!removal && (ends || report.removed == removed)) return Fail(removal.error());
    if (ends || (removal && *removal == Removal::kNothing)) break;
    if (removal && *removal == Removal::kStale) {
      if (++stale == kMostStale) return Fail(StillListed(store, *first));
      std::this_thread::sleep_for(kStalePause);
    }
    OC_TRY_VOID(stream.BeginAgain());
  }
  crew.ListingDone();
  report.left_out = stream.left_out();
  report.stopped = report.stopped || Stopped(options);
  return report;
}

}  // namespace overcap
