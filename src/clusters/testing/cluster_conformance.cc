// SPDX-License-Identifier: Apache-2.0
#include "clusters/testing/cluster_conformance.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text.h"
#include "model/job_id.h"

namespace overcap {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ClusterConformance);

namespace {

constexpr int64_t kLong = 60;  // seconds; more than any of these jobs needs

int64_t NowUs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

std::vector<std::string> Ids(const std::vector<JobRecord>& records) {
  std::vector<std::string> ids;
  for (const JobRecord& record : records) ids.push_back(record.spec.id);
  return ids;
}

template <typename T>
ErrorCode CodeOf(const Result<T>& result) {
  EXPECT_FALSE(result) << "succeeded";
  return result ? ErrorCode::kInternal : result.error().code;
}

#define ASSERT_OK(expr)                                    \
  do {                                                     \
    const auto ok_result_ = (expr);                        \
    ASSERT_TRUE(ok_result_) << ok_result_.error().message; \
  } while (false)

}  // namespace

void ClusterConformance::SetUp() {
  std::string why;
  cluster_ = GetParam().make(&why);
  if (cluster_ == nullptr) GTEST_SKIP() << "SKIPPED: " << why;
}

// Nothing may run on after a test.
void ClusterConformance::TearDown() {
  if (cluster_ == nullptr) return;
  const auto jobs = cluster_->List({.states = {JobState::kHeld, JobState::kQueued, JobState::kRunning}});
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_OK(cluster_->Cancel(Ids(*jobs), "the test is over"));
  const auto ended = cluster_->Wait(Ids(*jobs), WaitUntil::kEnded, kLong);
  ASSERT_TRUE(ended && *ended);
}

JobSpec ClusterConformance::Spec(std::vector<std::string> command) {
  JobSpec spec;
  spec.submitted_us = NowUs() + next_;
  spec.id = MakeJobId("tester", spec.submitted_us / 1'000'000, static_cast<uint32_t>(0xabc00000 + next_++));
  spec.user = "tester";
  spec.cluster = cluster_->Name();
  spec.command = std::move(command);
  spec.workdir = "/tmp";
  spec.source = "/tmp";
  return spec;
}

std::string ClusterConformance::Submit(const JobSpec& spec) {
  const auto plan = cluster_->Plan(spec);
  EXPECT_TRUE(plan) << plan.error().message;
  if (!plan) return {};
  const auto record = cluster_->Submit(*plan);
  EXPECT_TRUE(record) << record.error().message;
  return record ? record->spec.id : std::string();
}

JobRecord ClusterConformance::QueryOne(const std::string& id) {
  const auto records = cluster_->Query({id});
  EXPECT_TRUE(records) << records.error().message;
  return records && records->size() == 1 ? records->front() : JobRecord{};
}

JobRecord ClusterConformance::Ended(const std::string& id) {
  const auto done = cluster_->Wait({id}, WaitUntil::kEnded, kLong);
  EXPECT_TRUE(done && *done) << id << " did not end";
  return QueryOne(id);
}

TEST_P(ClusterConformance, AJobRunsToItsEnd) {
  const JobRecord job = Ended(Submit(Spec({"true"})));
  EXPECT_EQ(job.state, JobState::kSucceeded);
  EXPECT_EQ(job.exit_status, 0);
  EXPECT_EQ(job.attempt, 1);
  EXPECT_EQ(job.first_failed_rank, -1);
  EXPECT_GT(job.started_us, 0);
  EXPECT_GE(job.ended_us, job.started_us);
}

TEST_P(ClusterConformance, TheExitStatusIsTheCommandsOwn) {
  const JobRecord job = Ended(Submit(Spec({"sh", "-c", "exit 7"})));
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.exit_status, 7);
  EXPECT_EQ(job.first_failed_rank, 0);
}

TEST_P(ClusterConformance, TheRecordKeepsTheSpec) {
  JobSpec spec = Spec({"true", "a  b", "c\nd", "&&", "\xC3\xBC"});
  spec.name = "named";
  spec.resources.time_seconds = 100;
  spec.hold = true;
  EXPECT_EQ(QueryOne(Submit(spec)).spec.command, spec.command);
  EXPECT_EQ(QueryOne(spec.id).spec.name, "named");
  EXPECT_EQ(QueryOne(spec.id).spec.resources, spec.resources);
}

TEST_P(ClusterConformance, SubmittingTwiceIsTheSameAsOnce) {
  const JobSpec spec = Spec({"true"});
  Submit(spec);
  Ended(spec.id);
  EXPECT_EQ(Submit(spec), spec.id);
  const JobRecord job = Ended(spec.id);
  EXPECT_EQ(job.attempt, 1);
  const auto all = cluster_->List({.all = true});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), 1u);
}

TEST_P(ClusterConformance, AnotherSpecUnderAKnownIdIsAConflict) {
  JobSpec spec = Spec({"true"});
  Submit(spec);
  spec.command = {"false"};
  EXPECT_EQ(CodeOf(cluster_->Submit({spec, ""})), ErrorCode::kConflict);
}

TEST_P(ClusterConformance, PlanRefusesMoreGpusThanThereAreAndChangesNothing) {
  JobSpec spec = Spec({"true"});
  spec.resources.gpus = 1000;
  const auto plan = cluster_->Plan(spec);
  EXPECT_EQ(CodeOf(plan), ErrorCode::kUsage);
  EXPECT_NE(plan.error().message.find("asks for 1000 GPUs"), std::string::npos) << plan.error().message;
  const auto all = cluster_->List({.all = true});
  ASSERT_TRUE(all);
  EXPECT_TRUE(all->empty());
}

TEST_P(ClusterConformance, PlanSaysWhatIsSent) {
  const JobSpec spec = Spec({"true", "two words"});
  const auto plan = cluster_->Plan(spec);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->spec, spec);
  EXPECT_NE(plan->text.find("true 'two words'"), std::string::npos) << plan->text;
}

TEST_P(ClusterConformance, QueryKeepsTheOrderOfTheIds) {
  const std::string a = Submit(Spec({"true"})), b = Submit(Spec({"true"})), c = Submit(Spec({"true"}));
  const auto records = cluster_->Query({c, a, b, a});
  ASSERT_TRUE(records) << records.error().message;
  EXPECT_EQ(Ids(*records), (std::vector<std::string>{c, a, b, a}));
}

TEST_P(ClusterConformance, AnUnknownIdIsNamed) {
  const std::string known = Submit(Spec({"true"}));
  const std::string unknown = "tester_1_00000001";
  const auto records = cluster_->Query({known, unknown});
  ASSERT_EQ(CodeOf(records), ErrorCode::kNotFound);
  EXPECT_NE(records.error().message.find("'" + unknown + "'"), std::string::npos) << records.error().message;
  EXPECT_EQ(CodeOf(cluster_->Cancel({unknown}, "")), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf(cluster_->Remove({unknown})), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf(cluster_->Wait({unknown}, WaitUntil::kEnded, 1)), ErrorCode::kNotFound);
}

TEST_P(ClusterConformance, ARunningJobCanBeCancelledTwice) {
  const std::string id = Submit(Spec({"sleep", "600"}));
  const auto started = cluster_->Wait({id}, WaitUntil::kStarted, kLong);
  ASSERT_TRUE(started && *started);
  ASSERT_OK(cluster_->Cancel({id}, "enough"));
  ASSERT_OK(cluster_->Cancel({id}, "enough"));
  EXPECT_EQ(Ended(id).state, JobState::kCancelled);
  ASSERT_OK(cluster_->Cancel({id}, "again"));
  EXPECT_EQ(QueryOne(id).state, JobState::kCancelled);
}

TEST_P(ClusterConformance, CancellingAnEndedJobLeavesItAsItIs) {
  const std::string id = Submit(Spec({"true"}));
  const JobRecord before = Ended(id);
  ASSERT_OK(cluster_->Cancel({id}, "too late"));
  EXPECT_EQ(QueryOne(id), before);
}

TEST_P(ClusterConformance, CancellingAWaitingJobEndsItWithoutAStart) {
  if (!cluster_->GetCapabilities().hold) GTEST_SKIP() << "the cluster cannot hold jobs";
  JobSpec spec = Spec({"true"});
  spec.hold = true;
  const std::string id = Submit(spec);
  ASSERT_OK(cluster_->Cancel({id}, "enough"));
  const JobRecord job = Ended(id);
  EXPECT_EQ(job.state, JobState::kCancelled);
  EXPECT_EQ(job.attempt, 0);
}

TEST_P(ClusterConformance, AHeldJobRunsOnlyAfterItsRelease) {
  if (!cluster_->GetCapabilities().hold) GTEST_SKIP() << "the cluster cannot hold jobs";
  JobSpec spec = Spec({"true"});
  spec.hold = true;
  const std::string id = Submit(spec);
  const std::string other = Submit(Spec({"true"}));
  Ended(other);  // by then a job that was not held would have run as well
  EXPECT_EQ(QueryOne(id).state, JobState::kHeld);
  ASSERT_OK(cluster_->Release({id}));
  EXPECT_EQ(Ended(id).state, JobState::kSucceeded);
}

TEST_P(ClusterConformance, HoldKeepsAWaitingJobAndRefusesARunningOne) {
  if (!cluster_->GetCapabilities().hold) GTEST_SKIP() << "the cluster cannot hold jobs";
  JobSpec spec = Spec({"true"});
  spec.hold = true;
  const std::string held = Submit(spec);
  const std::string running = Submit(Spec({"sleep", "600"}));
  const auto started = cluster_->Wait({running}, WaitUntil::kStarted, kLong);
  ASSERT_TRUE(started && *started);
  ASSERT_OK(cluster_->Hold({held}));
  EXPECT_EQ(CodeOf(cluster_->Hold({running})), ErrorCode::kConflict);
  ASSERT_OK(cluster_->Release({running}));
  EXPECT_EQ(QueryOne(running).state, JobState::kRunning);
}

TEST_P(ClusterConformance, RemoveForgetsEndedJobsOnly) {
  const std::string ended = Submit(Spec({"true"}));
  const std::string running = Submit(Spec({"sleep", "600"}));
  Ended(ended);
  const auto refused = cluster_->Remove({ended, running});
  EXPECT_EQ(CodeOf(refused), ErrorCode::kConflict);
  EXPECT_EQ(QueryOne(ended).state, JobState::kSucceeded);
  ASSERT_OK(cluster_->Remove({ended}));
  EXPECT_EQ(CodeOf(cluster_->Query({ended})), ErrorCode::kNotFound);
}

TEST_P(ClusterConformance, WaitGivesUpWhenTheTimeIsOver) {
  const std::string id = Submit(Spec({"sleep", "600"}));
  const auto now = cluster_->Wait({id}, WaitUntil::kEnded, 0);
  ASSERT_TRUE(now) << now.error().message;
  EXPECT_FALSE(*now);
  const auto soon = cluster_->Wait({id}, WaitUntil::kEnded, 1);
  ASSERT_TRUE(soon) << soon.error().message;
  EXPECT_FALSE(*soon);
}

TEST_P(ClusterConformance, AnEndedJobHasAlsoStarted) {
  const std::string id = Submit(Spec({"false"}));
  Ended(id);
  const auto started = cluster_->Wait({id}, WaitUntil::kStarted, 0);
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_TRUE(*started);
}

TEST_P(ClusterConformance, ListIsInTheOrderOfSubmission) {
  const std::string a = Submit(Spec({"true"})), b = Submit(Spec({"true"})), c = Submit(Spec({"true"}));
  const auto all = cluster_->List({.all = true});
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(Ids(*all), (std::vector<std::string>{a, b, c}));
}

TEST_P(ClusterConformance, ListFilters) {
  const std::string good = Submit(Spec({"true"})), bad = Submit(Spec({"false"}));
  Ended(good);
  Ended(bad);
  const auto failed = cluster_->List({.states = {JobState::kFailed}});
  ASSERT_TRUE(failed) << failed.error().message;
  EXPECT_EQ(Ids(*failed), std::vector<std::string>{bad});
  const auto mine = cluster_->List({.states = {}, .user = "tester"});
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->size(), 2u);
  const auto nobodys = cluster_->List({.states = {}, .user = "nobody"});
  ASSERT_TRUE(nobodys);
  EXPECT_TRUE(nobodys->empty());
  const auto future = cluster_->List({.since_us = NowUs() + 3'600'000'000, .all = true});
  ASSERT_TRUE(future);
  EXPECT_TRUE(future->empty());
}

TEST_P(ClusterConformance, AListForATableHasWhatATableShows) {
  JobSpec spec = Spec({"sh", "-c", "exit 3"});
  spec.name = "short";
  spec.resources.gpus = 1;
  Submit(spec);
  const JobRecord whole = Ended(spec.id);
  const auto brief = cluster_->List({.detail = ListDetail::kTable});
  ASSERT_TRUE(brief) << brief.error().message;
  ASSERT_EQ(brief->size(), 1u);
  const JobRecord& job = brief->front();
  EXPECT_EQ(job.spec.id, spec.id);
  EXPECT_EQ(job.spec.user, spec.user);
  EXPECT_EQ(job.spec.name, "short");
  EXPECT_EQ(job.spec.command, spec.command);
  EXPECT_EQ(job.spec.resources.gpus, 1);
  EXPECT_EQ(job.spec.submitted_us, spec.submitted_us);
  EXPECT_EQ(job.state, JobState::kFailed);
  EXPECT_EQ(job.exit_status, 3);
  EXPECT_EQ(job.attempt, 1);
  EXPECT_EQ(job.started_us, whole.started_us);
  EXPECT_EQ(job.ended_us, whole.ended_us);
}

TEST_P(ClusterConformance, AListForTheStoreNamesWhatItMustKeep) {
  JobSpec spec = Spec({"true"});
  spec.hold = true;
  spec.workdir = "";
  spec.snapshot = std::string(64, 'a');
  spec.environment = std::string(64, 'b');
  Submit(spec);
  const auto list = cluster_->List({.all = true, .detail = ListDetail::kStored});
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->size(), 1u);
  EXPECT_EQ(list->front().spec.id, spec.id);
  EXPECT_EQ(list->front().state, JobState::kHeld);
  EXPECT_EQ(list->front().spec.snapshot, spec.snapshot);
  EXPECT_EQ(list->front().spec.environment, spec.environment);
}

TEST_P(ClusterConformance, ResolveTakesSuffixesWholeIdsAndLast) {
  const std::string a = Submit(Spec({"true"})), b = Submit(Spec({"true"}));
  const auto ids = cluster_->Resolve({a.substr(a.size() - 5), a, "last"});
  ASSERT_TRUE(ids) << ids.error().message;
  EXPECT_EQ(*ids, (std::vector<std::string>{a, a, b}));
}

TEST_P(ClusterConformance, AnAmbiguousSuffixListsTheCandidates) {
  JobSpec one = Spec({"true", "first"}), two = Spec({"true", "second"});
  one.id = MakeJobId("tester", 1, 0x1111beef);
  two.id = MakeJobId("tester", 1, 0x2222beef);
  Submit(one);
  Submit(two);
  const auto ids = cluster_->Resolve({"beef"});
  ASSERT_EQ(CodeOf(ids), ErrorCode::kConflict);
  const std::string said = ids.error().message + ids.error().hint;
  for (const std::string& word : {one.id, two.id, std::string("true first"), std::string("true second")}) {
    EXPECT_NE(said.find(word), std::string::npos) << word << " is not in: " << said;
  }
}

TEST_P(ClusterConformance, AnUnknownSuffixIsNotFound) {
  const std::string id = Submit(Spec({"true"}));
  const auto near = cluster_->Resolve({id.substr(id.size() - 8, 7) + "z"});
  ASSERT_EQ(CodeOf(near), ErrorCode::kNotFound);
  EXPECT_NE((near.error().message + near.error().hint).find(id), std::string::npos) << near.error().hint;
  EXPECT_EQ(CodeOf(cluster_->Resolve({"nothing-like-it"})), ErrorCode::kNotFound);
}

TEST_P(ClusterConformance, GpusAreGivenToOneJobAtATime) {
  const auto nodes = cluster_->Nodes();
  ASSERT_TRUE(nodes && nodes->size() == 1);
  const int gpus = static_cast<int>(nodes->front().machine.gpus.size());
  ASSERT_GE(gpus, 2);
  EXPECT_EQ(nodes->front().gpus_free, gpus);
  JobSpec all = Spec({"sleep", "600"}), next = Spec({"true"});
  all.resources.gpus = gpus;
  next.resources.gpus = 1;
  Submit(all);
  const auto started = cluster_->Wait({all.id}, WaitUntil::kStarted, kLong);
  ASSERT_TRUE(started && *started);
  // Which ones is told by its agent, a moment after the cluster says that it runs.
  const int64_t deadline = NowUs() + kLong * 1'000'000;
  while (QueryOne(all.id).gpu_indices.empty() && NowUs() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(static_cast<int>(QueryOne(all.id).gpu_indices.size()), gpus);
  Submit(next);
  Ended(Submit(Spec({"true"})));  // a job without GPUs passes by
  EXPECT_EQ(QueryOne(next.id).state, JobState::kQueued);
  ASSERT_OK(cluster_->Cancel({all.id}, "make room"));
  EXPECT_EQ(Ended(next.id).state, JobState::kSucceeded);
}

TEST_P(ClusterConformance, AJobStartsAfterTheOneThatItNames) {
  if (!cluster_->GetCapabilities().dependencies) GTEST_SKIP() << "the cluster knows no dependencies";
  const std::string bad = Submit(Spec({"false"}));
  JobSpec needs = Spec({"true"}), any = Spec({"true"});
  needs.after = {{bad, false}};
  any.after = {{bad, true}};
  Submit(needs);
  Submit(any);
  EXPECT_EQ(Ended(needs.id).state, JobState::kCancelled);
  EXPECT_EQ(Ended(any.id).state, JobState::kSucceeded);
}

TEST_P(ClusterConformance, AJobThatReplacesAnotherStartsAfterItsEnd) {
  const std::string old = Submit(Spec({"sleep", "600"}));
  const auto started = cluster_->Wait({old}, WaitUntil::kStarted, kLong);
  ASSERT_TRUE(started && *started);
  JobSpec spec = Spec({"true"});
  spec.replaces = old;
  Submit(spec);
  const JobRecord job = Ended(spec.id);
  const JobRecord replaced = QueryOne(old);
  EXPECT_EQ(replaced.state, JobState::kCancelled);
  EXPECT_LE(replaced.ended_us, job.started_us);
}

}  // namespace overcap
