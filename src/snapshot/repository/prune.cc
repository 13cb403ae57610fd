// SPDX-License-Identifier: Apache-2.0
// The steps of a prune; their numbers are those of docs/formats/snapshot.md, "Writers and prune".
#include <algorithm>
#include <thread>

#include "base/text.h"
#include "snapshot/repository/index_object.h"
#include "snapshot/repository/object_keys.h"
#include "snapshot/repository/prune_copy.h"
#include "snapshot/repository/prune_plan.h"
#include "snapshot/repository/prune_survey.h"
#include "snapshot/repository/upkeep.h"
#include "snapshot/repository/writer_presence.h"
#include "snapshot/repository/writer_watch.h"

namespace overcap {
namespace {

constexpr int64_t kFirstNapUs = 50'000, kLongestNapUs = 2'000'000;
constexpr int64_t kTemporaryFilesUs = 86'400'000'000;
constexpr size_t kRemovalsPerCheck = 64;

class PruneRun {
 public:
  PruneRun(const Repository& repository, const PruneOptions& options)
      : repository_(repository), options_(options) {}

  Result<PruneReport> Run();
  Result<PruneReport> Foresee();

 private:
  Result<void> TakeOver();
  Result<void> Condemn(std::vector<Digest> packs);
  Result<void> Wait();
  Result<void> Remove();
  Result<void> RemovePacks(const RepositorySurvey& survey, const std::vector<uint32_t>& packs);
  Result<void> DropCondemned();
  void CountKept(const RepositorySurvey& survey, const std::unordered_set<Digest>& gone);
  void Tell(const std::string& step, int64_t done, int64_t total) const {
    if (options_.progress) options_.progress(step, done, total);
  }

  const Repository& repository_;
  const PruneOptions& options_;
  PruneReport report_;
  std::unique_ptr<WriterPresence> presence_;
  // Condemned objects that this prune answers for: those of prunes that are gone, and its own at the end.
  std::vector<CondemnedObject> groups_;
  std::vector<bool> free_;  // by group: nobody relies on its packs
};

// What a prune that is gone has left behind is ours now.
Result<void> PruneRun::TakeOver() {
  OC_TRY(writers, WriterWatch::List(repository_, presence_->id(), options_.writer_dead_us));
  // Listed after the presence was: a damaged object may be that of a prune which has just come.
  const CondemnedList& list = presence_->condemned();
  for (const CondemnedObject& object : list.objects) {
    if (!writers.Has(object.id)) groups_.push_back(object);
  }
  for (const std::string& id : list.damaged) {
    if (!writers.Has(id)) OC_TRY_VOID(repository_.store().Remove(CondemnedKey(id)));
  }
  return {};
}

Result<void> PruneRun::Condemn(std::vector<Digest> packs) {
  CondemnedRecord record{.packs = std::move(packs), .began_us = repository_.clock().WallUs()};
  CondemnedRecord all = record;
  for (const CondemnedObject& object : groups_) {
    all.packs.insert(all.packs.end(), object.record.packs.begin(), object.record.packs.end());
  }
  OC_TRY_VOID(repository_.store().Put(CondemnedKey(presence_->id()), EncodeCondemnedRecord(all)));
  groups_.push_back({presence_->id(), std::move(record)});
  return {};
}

Result<void> PruneRun::Wait() {
  const int64_t deadline = repository_.clock().MonotonicUs() + options_.wait_us;
  OC_TRY(writers, WriterWatch::List(repository_, presence_->id(), options_.writer_dead_us));
  const auto waits = [&](const CondemnedObject& group) {
    return !group.record.packs.empty() && writers.MustWait(group.id);
  };
  const int64_t total = static_cast<int64_t>(groups_.size());
  for (int64_t nap = kFirstNapUs;; nap = std::min(nap * 2, kLongestNapUs)) {
    const int64_t waiting = std::count_if(groups_.begin(), groups_.end(), waits);
    const int64_t left = deadline - repository_.clock().MonotonicUs();
    if (waiting == 0 || left <= 0) break;
    Tell("wait", total - waiting, total);
    const int64_t us = std::min(nap, left);
    if (options_.sleep) {
      options_.sleep(us);
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(us));
    }
    presence_->BeatIfDue();
    OC_TRY_VOID(writers.Look());
  }
  for (const CondemnedObject& group : groups_) {
    free_.push_back(!waits(group));
    if (!free_.back()) report_.writers = writers.Describe(group.id);
  }
  return {};
}

Result<void> PruneRun::Remove() {
  OC_TRY(survey, SurveyRepository(repository_, options_));
  std::unordered_set<Digest> candidates, waiting;
  for (size_t i = 0; i < groups_.size(); ++i) {
    std::unordered_set<Digest>& to = free_[i] ? candidates : waiting;
    to.insert(groups_[i].record.packs.begin(), groups_[i].record.packs.end());
  }
  const std::vector<uint32_t> go = PacksThatMayGo(survey.index, survey.live, candidates);
  OC_TRY_VOID(RemovePacks(survey, go));
  std::unordered_set<Digest> gone;
  for (const uint32_t pack : go) gone.insert(survey.index.pack(pack).id);
  for (uint32_t pack = 0; pack < survey.index.pack_count(); ++pack) {
    const Digest& id = survey.index.pack(pack).id;
    report_.waiting_packs += waiting.contains(id) && !gone.contains(id);
  }
  CountKept(survey, gone);
  return DropCondemned();
}

Result<void> PruneRun::RemovePacks(const RepositorySurvey& survey, const std::vector<uint32_t>& packs) {
  if (packs.empty()) return {};
  const std::unordered_set<uint32_t> going(packs.begin(), packs.end());
  std::vector<IndexedPack> staying;
  for (uint32_t pack = 0; pack < survey.index.pack_count(); ++pack) {
    if (!going.contains(pack)) staying.push_back(IndexedPackOf(survey.index, pack));
  }
  OC_TRY_VOID(PutIndex(repository_, std::move(staying), survey.report.index_keys));
  for (size_t i = 0; i < packs.size(); ++i) {
    if (i % kRemovalsPerCheck == 0) {
      OC_TRY(there, presence_->StillThere());
      if (!there) return Fail(ErrorCode::kConflict, "another prune took this one for dead", "try again");
      Tell("remove", static_cast<int64_t>(i), static_cast<int64_t>(packs.size()));
    }
    const KnownPack& pack = survey.index.pack(packs[i]);
    OC_TRY_VOID(repository_.store().Remove(PackKey(pack.id)));
    ++report_.removed_packs;
    report_.removed_bytes += pack.size;
  }
  return {};
}

// Our own object names the packs of all groups: it stays, for the next prune, while one of them waits.
Result<void> PruneRun::DropCondemned() {
  const bool all_free = std::find(free_.begin(), free_.end(), false) == free_.end();
  for (size_t i = 0; i < groups_.size(); ++i) {
    const bool own = groups_[i].id == presence_->id();
    if (own ? all_free : free_[i]) OC_TRY_VOID(repository_.store().Remove(CondemnedKey(groups_[i].id)));
  }
  return {};
}

void PruneRun::CountKept(const RepositorySurvey& survey, const std::unordered_set<Digest>& gone) {
  for (uint32_t pack = 0; pack < survey.index.pack_count(); ++pack) {
    if (gone.contains(survey.index.pack(pack).id)) continue;
    ++report_.kept_packs;
    report_.kept_bytes += survey.index.pack(pack).size;
  }
}

std::vector<Digest> IdsOf(const ChunkIndex& index, const std::vector<uint32_t>& packs) {
  std::vector<Digest> ids;
  for (const uint32_t pack : packs) ids.push_back(index.pack(pack).id);
  return ids;
}

Result<PruneReport> PruneRun::Run() {
  OC_TRY(presence, WriterPresence::Register(repository_, true));
  presence_ = std::move(presence);
  OC_TRY_VOID(TakeOver());
  OC_TRY(survey, SurveyRepository(repository_, options_));
  Tell("trees", survey.live.size(), survey.live.size());
  std::unordered_set<Digest> leave = survey.condemned.Packs();
  const PrunePlan plan =
      PlanPrune(survey.index, MeasureUse(survey.index, survey.live), options_.repack_below, leave);
  std::vector<Digest> packs = IdsOf(survey.index, plan.remove);
  for (const std::vector<uint32_t>* going : {&plan.remove, &plan.copy}) {
    for (const Digest& id : IdsOf(survey.index, *going)) leave.insert(id);
  }
  OC_TRY(copied, CopyUsedChunks(repository_, survey, plan.copy, std::move(leave)));
  report_.copied_bytes = copied.bytes;
  for (const Digest& id : IdsOf(survey.index, copied.packs)) packs.push_back(id);
  if (packs.empty() && groups_.empty()) {
    CountKept(survey, {});
  } else {
    OC_TRY_VOID(Condemn(std::move(packs)));
    OC_TRY_VOID(Wait());
    OC_TRY_VOID(Remove());
  }
  if (const auto cleaned = repository_.store().CleanUp(kTemporaryFilesUs); !cleaned)
    report_.not_cleaned = cleaned.error().message;
  return report_;
}

// What a prune would do, without a trace of it.
Result<PruneReport> PruneRun::Foresee() {
  OC_TRY(survey, SurveyRepository(repository_, options_));
  const std::vector<PackUse> use = MeasureUse(survey.index, survey.live);
  const PrunePlan plan = PlanPrune(survey.index, use, options_.repack_below, {});
  std::unordered_set<Digest> gone;
  for (const std::vector<uint32_t>* going : {&plan.remove, &plan.copy}) {
    for (const uint32_t pack : *going) {
      gone.insert(survey.index.pack(pack).id);
      ++report_.removed_packs;
      report_.removed_bytes += survey.index.pack(pack).size;
      report_.copied_bytes += use[pack].used_bytes;
    }
  }
  CountKept(survey, gone);
  return report_;
}

}  // namespace

Result<PruneReport> Prune(const Repository& repository, const PruneOptions& options) {
  PruneRun run(repository, options);
  return options.dry_run ? run.Foresee() : run.Run();
}

}  // namespace overcap
