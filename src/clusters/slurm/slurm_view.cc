// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_view.h"

#include <algorithm>

#include "base/text.h"
#include "clusters/advice.h"
#include "clusters/slurm/config_text.h"
#include "clusters/slurm/history_text.h"
#include "clusters/slurm/lab_accounts.h"
#include "clusters/slurm/slurm_check.h"
#include "sys/user.h"

namespace overcap {
namespace {

// What changes when an administrator types something.
constexpr int64_t kRareAgeUs = 600'000'000;
// What changes only when slurmctld starts again.
constexpr int64_t kConfigAgeUs = 86'400'000'000;
// What is learned from weeks does not change in minutes, and a database takes its time.
constexpr int64_t kHistoryAgeUs = 1'200'000'000;

// A controller that was just found away is not asked again: each try takes its time.
Result<MirrorText> ReadOrPeek(Mirror* mirror, MirrorKind kind, int64_t age_us, bool ask) {
  if (ask) return mirror->Read(kind, age_us);
  auto known = mirror->Peek(kind);
  if (!known) return Fail(ErrorCode::kUnavailable, "nothing is known of it");
  return *std::move(known);
}

// Of what was read, for the whole picture.
void Account(const MirrorText& text, int64_t* taken_us, std::string* stale) {
  *taken_us = text.taken_us;
  if (text.error && stale->empty()) *stale = text.error->message;
}

// Several clusters may share one database.
void KeepOwnCluster(const SlurmConfig& config, std::vector<SlurmAssociation>* rows) {
  const std::string_view name = config.Get("ClusterName");
  const auto other = [&](const SlurmAssociation& row) { return row.cluster != rows->front().cluster; };
  if (name.empty() || std::none_of(rows->begin(), rows->end(), other)) return;
  std::erase_if(*rows, [&](const SlurmAssociation& row) { return row.cluster != name; });
}

// Whether Slurm shows this user only their own jobs. Its administrators see all.
bool HidesJobs(const SlurmConfig& config, const std::vector<SqueueJob>& jobs) {
  const std::string user = UserName();
  return config.HasWord("PrivateData", "jobs") && user != "root" &&
         !config.Get("SlurmUser").starts_with(user + "(") &&
         std::all_of(jobs.begin(), jobs.end(), [&](const SqueueJob& job) { return job.user == user; });
}

}  // namespace

template <typename Parse>
auto SlurmView::ReadRare(MirrorKind kind, int64_t age_us, Parse parse, ClusterPicture* about)
    -> std::decay_t<decltype(*parse(std::string_view()))> {
  const auto text = ReadOrPeek(&context_->mirror(), kind, age_us, about->stale.empty());
  if (!text) {
    if (about->stale.empty()) about->notes.push_back(text.error().message);
    return {};
  }
  auto parsed = parse(*text->text);
  if (!parsed) {
    about->notes.push_back(parsed.error().message);
    return {};
  }
  return std::move(*parsed);
}

Result<void> SlurmView::ReadJobs(int64_t age_us, SlurmFacts* facts, ClusterPicture* about) {
  OC_TRY(queue, context_->mirror().Read(MirrorKind::kQueue, age_us));
  Account(queue, &about->taken_us, &about->stale);
  OC_TRY(jobs, ParseSqueue(*queue.text, queue.mark));
  facts->jobs = std::move(jobs);
  return {};
}

Result<void> SlurmView::ReadRest(int64_t nodes_age_us, int64_t rare_age_us, SlurmFacts* facts,
                                 ClusterPicture* about) {
  const auto nodes_text =
      ReadOrPeek(&context_->mirror(), MirrorKind::kNodes, nodes_age_us, about->stale.empty());
  if (nodes_text) {
    Account(*nodes_text, &about->nodes_taken_us, &about->stale);
    OC_TRY(nodes, ParseSinfo(*nodes_text->text, nodes_text->mark));
    facts->nodes = std::move(nodes);
  } else if (about->stale.empty()) {
    return Fail(nodes_text.error());
  } else {
    about->notes.push_back("nothing is known about the nodes");
  }
  facts->partitions = ReadRare(MirrorKind::kPartitions, rare_age_us, ParsePartitions, about);
  const SlurmConfig config =
      ReadRare(MirrorKind::kConfig, std::max(rare_age_us, kConfigAgeUs), ParseConfig, about);
  facts->preempt_type = config.Get("PreemptType");
  if (HidesJobs(config, facts->jobs))
    about->notes.push_back("jobs of other users: PrivateData=jobs hides them, so only your own are counted");
  facts->associations = ReadRare(MirrorKind::kAssociations, rare_age_us, ParseAssociations, about);
  if (!facts->associations.empty()) {
    KeepOwnCluster(config, &facts->associations);
    facts->qos = ReadRare(MirrorKind::kQos, rare_age_us, ParseQos, about);
    facts->users = ReadRare(MirrorKind::kUsers, rare_age_us, ParseUsers, about);
  }
  facts->overcap_partitions = context_->settings().scheduler.overcap_partitions;
  return {};
}

Result<ClusterPicture> SlurmView::Picture(const PictureAges& ages) {
  return MakePicture(ages, kRareAgeUs, Jobs::kAll);
}

Result<ClusterPicture> SlurmView::MakePicture(const PictureAges& ages, int64_t rare_age_us, Jobs jobs) {
  SlurmFacts facts;
  ClusterPicture about;
  if (jobs == Jobs::kAll) OC_TRY_VOID(ReadJobs(ages.jobs_us, &facts, &about));
  OC_TRY_VOID(ReadRest(ages.nodes_us, rare_age_us, &facts, &about));
  ClusterPicture picture = MakeSlurmPicture(facts);
  picture.taken_us = about.taken_us, picture.nodes_taken_us = about.nodes_taken_us;
  picture.stale = std::move(about.stale), picture.notes = std::move(about.notes);
  return picture;
}

Result<std::vector<PastRun>> SlurmView::PastRuns() {
  OC_TRY(text, context_->mirror().Read(MirrorKind::kHistory, kHistoryAgeUs));
  OC_TRY(runs, ParseHistory(*text.text, text.mark));
  const auto known = context_->mirror().Peek(MirrorKind::kAssociations);
  const auto associations = known ? ParseAssociations(*known->text) : Result<std::vector<SlurmAssociation>>();
  if (!known || !associations) return runs;
  const LabAccounts accounts(*associations);
  for (PastRun& run : runs) run.lab = accounts.LabOf(run.lab);
  return runs;
}

std::vector<std::string> SlurmView::Advise(const JobSpec& spec) {
  constexpr int64_t kAnyAgeUs = INT64_MAX / 4;
  auto picture = MakePicture({kAnyAgeUs, kAnyAgeUs}, kAnyAgeUs, Jobs::kNone);
  if (!picture) return {};
  const int64_t age_us = MirrorAge(context_->clock().WallUs(), picture->nodes_taken_us).value_or(kAnyAgeUs);
  const SchedulerSettings& ours = context_->settings().scheduler;
  AdviceRequest request{spec, spec.user.empty() ? UserName() : spec.user, age_us / 1'000'000};
  if (request.spec.placement.partitions.empty()) request.spec.placement.partitions = ours.partitions;
  if (request.spec.placement.account.empty()) request.spec.placement.account = ours.account;
  if (request.spec.placement.qos.empty()) request.spec.placement.qos = ours.qos;
  request.spec.placement.account = LabInPicture(*picture, request.spec.placement.account);
  if (AdviceNeedsJobs(*picture, request)) {
    picture = MakePicture({kAnyAgeUs, kAnyAgeUs}, kAnyAgeUs, Jobs::kAll);
    if (!picture) return {};
  }
  return AdviceFor(*picture, request);
}

std::vector<ClusterFinding> SlurmView::Check() {
  return CheckSlurm(context_);
}

}  // namespace overcap
