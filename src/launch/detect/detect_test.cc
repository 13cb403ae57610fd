// SPDX-License-Identifier: Apache-2.0
#include "launch/detect/detect.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "launch/detect/testing/fake_programs.h"
#include "sys/fake_files.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

using Hosts = std::vector<AllocatedHost>;

std::string Data(const std::string& name) {
  return PosixFiles().Read(StrCat(OVERCAP_TEST_DATA, "/", name)).value();
}

ProbedGpus Probed(int count, const char* type, const char* how) {
  ProbedGpus probed;
  probed.count = count;
  probed.type = type;
  probed.how = how;
  return probed;
}

// A world in memory; without anything in it, a plain machine without GPUs.
class DetectTest : public testing::Test {
 protected:
  void SetFile(const std::string& path, const std::string& text) {
    ASSERT_TRUE(files_.MakeFolders(path.substr(0, path.rfind('/'))));
    ASSERT_TRUE(files_.WriteAtomic(path, text, false));
  }
  void SetSlurmSample(const std::string& file) {
    for (const std::string& line : Split(Data(file), '\n')) {
      if (const size_t equals = line.find('='); equals != std::string::npos) {
        variables_.Set(line.substr(0, equals), line.substr(equals + 1));
      }
    }
  }
  Result<Allocation> TryDetect() {
    DetectInputs inputs{.variables = variables_,
                        .programs = programs_,
                        .files = files_,
                        .probe_gpus =
                            [this] {
                              ++probes_;
                              return probed_;
                            },
                        .this_host = host_,
                        .user = "alice",
                        .state_folder = "/state"};
    inputs.hostfile = hostfile_;
    inputs.hostfile_name = "hosts.txt";
    inputs.site_name = site_gpus_ >= 0 ? "aurora" : "";
    inputs.site_reason = "host name fits";
    inputs.site_gpus = site_gpus_;
    inputs.declared_gpus = declared_gpus_;
    return DetectAllocation(inputs);
  }
  Allocation Detect() { return TryDetect().value(); }

  Variables variables_;
  FakePrograms programs_;
  FakeFiles files_;
  ProbedGpus probed_;
  int probes_ = 0;
  std::string host_ = "n1";
  std::optional<Hosts> hostfile_;
  int site_gpus_ = -1, declared_gpus_ = -1;
};

TEST_F(DetectTest, APlainMachineIsLocalAndNothingIsRun) {
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kLocal);
  EXPECT_FALSE(found.in_job);
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 0, 0}}));
  EXPECT_EQ(found.machine, "n1");
  EXPECT_EQ(found.reasons.scheduler, "no scheduler was found");
  EXPECT_EQ(found.reasons.hosts, "this machine");
  EXPECT_EQ(found.reasons.gpus, "no GPU was found");
  EXPECT_TRUE(programs_.lines().empty());
  EXPECT_TRUE(found.warnings.empty());
}

TEST_F(DetectTest, ASchedulerThatIsNoneIsRefused) {
  variables_.Set("OVERCAP_SCHEDULER", "lsf");
  const auto found = TryDetect();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kUsage);
  EXPECT_EQ(found.error().message, "OVERCAP_SCHEDULER is 'lsf'");
}

TEST_F(DetectTest, TheNamedSchedulerWinsOverEveryJob) {
  SetSlurmSample("launch-env/slurm-22.05.8-batch-script.txt");
  variables_.Set("OVERCAP_SCHEDULER", "local");
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kLocal);
  EXPECT_EQ(found.hosts.size(), 1u);
  EXPECT_EQ(found.reasons.scheduler, "OVERCAP_SCHEDULER");
  EXPECT_TRUE(programs_.lines().empty());
}

// ---- Slurm

TEST_F(DetectTest, ALiveSlurmJobIsReadFromItsVariables) {
  SetSlurmSample("launch-env/slurm-22.05.8-batch-script.txt");
  programs_.Answer("squeue -h -j 2 -o %T", "RUNNING\n");
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kSlurm);
  EXPECT_TRUE(found.in_job);
  EXPECT_EQ(found.job_id, "2");
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 0, 2}, {"n2", 0, 2}}));
  EXPECT_EQ(found.gpu_type, "a40");
  EXPECT_TRUE(found.gpus_from_scheduler);
  EXPECT_EQ(found.reasons.job_id, "SLURM_JOB_ID");
  EXPECT_EQ(found.reasons.hosts, "SLURM_JOB_NODELIST");
  EXPECT_EQ(found.reasons.gpus, "SLURM_GPUS_PER_NODE");
  EXPECT_EQ(found.started_by, "");
  EXPECT_EQ(probes_, 0);
  EXPECT_EQ(programs_.lines(), std::vector<std::string>{"squeue -h -j 2 -o %T"});
}

TEST_F(DetectTest, ARankOfAStepIsInTheJobAndAlreadyStarted) {
  SetSlurmSample("launch-env/slurm-22.05.8-step-rank3.txt");
  programs_.Answer("squeue", "RUNNING\n");
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kSlurm);
  EXPECT_EQ(found.started_by, "SLURM_STEP_ID");
}

TEST_F(DetectTest, AnInteractiveStepIsNoRank) {
  SetSlurmSample("launch-env/slurm-22.05.8-step-rank3.txt");
  variables_.Set("SLURM_STEP_ID", "4294967290");
  programs_.Answer("squeue", "RUNNING\n");
  EXPECT_EQ(Detect().started_by, "");
}

TEST_F(DetectTest, ASlurmJobThatIsOverIsNotBelieved) {
  SetSlurmSample("launch-env/slurm-22.05.8-batch-script.txt");
  programs_.Answer("squeue -h -j 2 -o %T", "slurm_load_jobs error: Invalid job id specified\n", 1);
  programs_.Answer("squeue -h -u alice -t R -o %A|%S|%N", "");
  programs_.Install("sbatch");
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kSlurm);
  EXPECT_FALSE(found.in_job);
  EXPECT_EQ(found.job_id, "");
  EXPECT_EQ(found.hosts.size(), 1u);
  EXPECT_EQ(found.warnings, std::vector<std::string>{"SLURM_JOB_ID names job 2, which is over"});
}

TEST_F(DetectTest, WhenSqueueDoesNotAnswerTheVariablesAreBelieved) {
  SetSlurmSample("launch-env/slurm-22.05.8-batch-script.txt");
  programs_.Hang("squeue");
  const Allocation found = Detect();
  EXPECT_TRUE(found.in_job);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_EQ(found.warnings[0], "squeue does not tell whether job 2 still runs; SLURM_JOB_ID is believed");
}

TEST_F(DetectTest, GpusThatDifferBetweenHostsAreAskedFor) {
  variables_ = Variables({"SLURM_JOBID=9", "SLURM_NODELIST=n[1-2]", "SLURM_GPUS=6", "SLURM_GPUS_ON_NODE=4"});
  programs_.Answer("squeue", "RUNNING\n");
  programs_.Answer("scontrol -o -d show job 9",
                   "JobId=9 JobName=x UserId=u(1) NodeList=n[1-2] Nodes=n1 GRES=gpu:a40:4(IDX:0-3) "
                   "Nodes=n2 GRES=gpu:a40:2(IDX:0-1)\n");
  const Allocation found = Detect();
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 0, 4}, {"n2", 0, 2}}));
  EXPECT_EQ(found.reasons.job_id, "SLURM_JOBID");
  EXPECT_EQ(found.reasons.gpus, "scontrol -d show job");
}

TEST_F(DetectTest, WithoutScontrolThisHostsGpusAreTakenForAllWithAWarning) {
  variables_ = Variables({"SLURM_JOB_ID=9", "SLURM_JOB_NODELIST=n[1-2]", "SLURM_GPUS_ON_NODE=4"});
  programs_.Answer("squeue", "RUNNING\n");
  const Allocation found = Detect();
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 0, 4}, {"n2", 0, 4}}));
  EXPECT_EQ(found.warnings.size(), 1u);
}

TEST_F(DetectTest, TasksAreSlotsOnlyWithoutGpusAndWhenTheyWereAskedFor) {
  variables_ = Variables({"SLURM_JOB_ID=9", "SLURM_JOB_NODELIST=n[1-3]", "SLURM_TASKS_PER_NODE=2(x2),1"});
  programs_.Answer("squeue", "RUNNING\n");
  EXPECT_EQ(Detect().hosts, (Hosts{{"n1", 0, 0}, {"n2", 0, 0}, {"n3", 0, 0}}));
  variables_.Set("SLURM_NTASKS", "5");
  EXPECT_EQ(Detect().hosts, (Hosts{{"n1", 2, 0}, {"n2", 2, 0}, {"n3", 1, 0}}));
  probed_ = Probed(4, "a100", "nvml");
  EXPECT_EQ(Detect().hosts, (Hosts{{"n1", 0, 4}, {"n2", 0, 4}, {"n3", 0, 4}}));
}

TEST_F(DetectTest, ABrokenNodeListIsAWarning) {
  variables_ = Variables({"SLURM_JOB_ID=9", "SLURM_JOB_NODELIST=n[1-"});
  programs_.Answer("squeue -h -j 9 -o %T", "RUNNING\n");
  programs_.Answer("squeue -h -u alice -t R -o %A|%S|%N", "");
  const Allocation found = Detect();
  EXPECT_FALSE(found.in_job);
  EXPECT_EQ(found.warnings.size(), 1u);
}

TEST_F(DetectTest, ASecondShellOnAHostFindsItsSlurmJob) {
  programs_.Answer("squeue -h -u alice -t R -o %A|%S|%N",
                   "12|2026-11-15T02:15:09|n[10-19]\n"  // n1 is a prefix of these
                   "4|2026-11-15T02:15:09|n1\n"
                   "5|2026-11-15T01:15:09|n[1-2]\n");
  programs_.Answer("scontrol -o -d show job 4", Data("slurm-22.05.8/scontrol-o-d-show-job.txt"));
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kSlurm);
  EXPECT_TRUE(found.in_job);
  EXPECT_EQ(found.job_id, "4");
  EXPECT_EQ(found.reasons.job_id, "squeue: job 4 runs on this host");
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 0, 2}}));
  EXPECT_EQ(found.gpu_type, "a40");
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_EQ(found.warnings[0], "job 4 is taken; you have more on this host: 5 (set SLURM_JOB_ID to choose)");
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"SLURM_JOB_ID", "4"},          {"SLURM_JOBID", "4"},
      {"SLURM_JOB_NODELIST", "n1"},   {"SLURM_NODELIST", "n1"},
      {"SLURM_JOB_NUM_NODES", "1"},   {"SLURM_NNODES", "1"},
      {"SLURM_JOB_NAME", "run1"},     {"SLURM_JOB_PARTITION", "short"},
      {"SLURM_JOB_ACCOUNT", "lab-b"}, {"SLURM_SUBMIT_DIR", "/srv/lab"},
      {"SLURM_GPUS_ON_NODE", "2"}};
  EXPECT_EQ(found.restored, expected);
}

TEST_F(DetectTest, OfSeveralJobsTheOneThatTheUserNamesIsTaken) {
  programs_.Answer("squeue -h -u alice -t R -o %A|%S|%N",
                   "4|2026-11-15T02:15:09|n1\n5|2026-11-15T01:15:09|n1\n");
  variables_.Set("SLURM_JOB_ID", "5");
  programs_.Answer("scontrol -o -d show job 5", "JobId=5 JobName=x UserId=u(1) NodeList=n1\n");
  const Allocation found = Detect();
  EXPECT_EQ(found.job_id, "5");
  EXPECT_TRUE(found.warnings.empty());
}

TEST_F(DetectTest, ALoginNodeIsInNoJob) {
  host_ = "login";
  programs_.Answer("squeue -h -u alice -t R -o %A|%S|%N", "4|2026-11-15T02:15:09|n1\n");
  programs_.Install("sbatch");
  site_gpus_ = 4;
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kSlurm);
  EXPECT_FALSE(found.in_job);
  EXPECT_EQ(found.reasons.scheduler, "sbatch is on PATH");
  EXPECT_EQ(found.hosts, (Hosts{{"login", 0, 0}})) << "the site's GPUs are those of its compute nodes";
}

TEST_F(DetectTest, AControllerThatDoesNotAnswerIsAWarning) {
  programs_.Answer("squeue", "slurm_load_jobs error: Unable to contact slurm controller\n", 1);
  programs_.Install("sbatch");
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kLocal);
  EXPECT_EQ(found.warnings,
            std::vector<std::string>{"cannot ask Slurm for your jobs: squeue failed with status 1: "
                                     "slurm_load_jobs error: Unable to contact slurm controller"});
}

TEST_F(DetectTest, ProgramsOfAPackageThatIsNotSetUpAreNotRun) {
  for (const char* name : {"squeue", "sbatch", "qstat", "qsub"}) programs_.Install(name, "/usr/bin");
  EXPECT_EQ(Detect().scheduler, SchedulerKind::kLocal);
  EXPECT_TRUE(programs_.lines().empty());
  SetFile("/etc/slurm/slurm.conf", "ClusterName=lab\n");
  programs_.Answer("squeue", "");
  EXPECT_EQ(Detect().scheduler, SchedulerKind::kSlurm);
}

// ---- PBS

TEST_F(DetectTest, ALivePbsJobIsReadFromItsNodeFile) {
  variables_ = Variables(
      {"PBS_JOBID=0.ml1", "PBS_NODEFILE=/spool/aux/0.ml1", "SLURM_JOB_ID=7", "SLURM_JOB_NODELIST=x"});
  SetFile("/spool/aux/0.ml1", "n1\nn1\nn2\nn2\n");
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kPbs) << "PBS comes before Slurm";
  EXPECT_EQ(found.job_id, "0.ml1");
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 2, 0}, {"n2", 2, 0}})) << "four lines are two hosts";
  EXPECT_EQ(found.reasons.hosts, "PBS_NODEFILE");
  EXPECT_TRUE(programs_.lines().empty());
}

TEST_F(DetectTest, OneLinePerHostSaysNothingAboutSlots) {
  variables_ = Variables({"PBS_JOBID=0.ml1", "PBS_NODEFILE=/spool/aux/0.ml1"});
  SetFile("/spool/aux/0.ml1", "n1\nn2\n");
  probed_ = Probed(4, "a100", "nvml");
  const Allocation found = Detect();
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 0, 4}, {"n2", 0, 4}}));
  EXPECT_EQ(found.reasons.gpus, "nvml; this host's number is taken for the others");
  EXPECT_FALSE(found.gpus_from_scheduler);
}

TEST_F(DetectTest, APbsJobIdThatWasLeftOverIsAWarning) {
  variables_ = Variables({"PBS_JOBID=0.ml1", "PBS_NODEFILE=/spool/aux/0.ml1"});
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kLocal);
  ASSERT_EQ(found.warnings.size(), 1u);
  EXPECT_TRUE(found.warnings[0].starts_with("PBS_JOBID names job 0.ml1, but its node file cannot be read: "))
      << found.warnings[0];
}

// The sample's job is tester's on ml1, ml2, ml3.
std::string QstatSampleFor(const std::string& user) {
  std::string text = Data("pbs-23.06.06/qstat-f-running.json");
  const std::string owner = "tester@";
  text.replace(text.find(owner), owner.size(), user + "@");
  return text;
}

TEST_F(DetectTest, ASecondShellOnAHostFindsItsPbsJobAndWritesANodeFile) {
  host_ = "ml2.example.org";
  programs_.Answer("qstat -f -F json", QstatSampleFor("alice"));
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kPbs);
  EXPECT_EQ(found.job_id, "0.ml1");
  EXPECT_EQ(found.reasons.job_id, "qstat: job 0.ml1 runs on this host");
  EXPECT_EQ(found.hosts, (Hosts{{"ml1", 2, 0}, {"ml2", 2, 0}, {"ml3", 2, 0}}));
  EXPECT_EQ(files_.Read("/state/env/nodefile-0.ml1").value(), "ml1\nml1\nml2\nml2\nml3\nml3\n");
  const Variables restored = [&] {
    Variables all;
    for (const auto& [name, value] : found.restored) all.Set(name, value);
    return all;
  }();
  EXPECT_EQ(restored.Get("PBS_JOBID"), "0.ml1");
  EXPECT_EQ(restored.Get("PBS_NODEFILE"), "/state/env/nodefile-0.ml1");
  EXPECT_EQ(restored.Get("PBS_O_WORKDIR"), "/opt/lab/home-tester/work");
  EXPECT_EQ(restored.Get("PBS_QUEUE"), "workq");
  EXPECT_EQ(restored.Get("PBS_JOBNAME"), "envjob");
  EXPECT_FALSE(restored.Has("FOO"));
}

TEST_F(DetectTest, TheJobsOwnNodeFileIsTakenWhereItCanBeRead) {
  host_ = "ml1";
  programs_.Answer("qselect -u alice -s R", "0.ml1\n");
  programs_.Answer("qstat -f -F json 0.ml1", QstatSampleFor("alice"));
  SetFile("/etc/pbs.conf", "PBS_SERVER=ml1\nPBS_HOME=/srv/pbs\n");
  SetFile("/srv/pbs/aux/0.ml1", "ml1\nml1\n");
  const Allocation found = Detect();
  ASSERT_GE(found.restored.size(), 2u);
  EXPECT_EQ(found.restored[1].second, "/srv/pbs/aux/0.ml1");
  EXPECT_FALSE(files_.Exists("/state/env"));
}

TEST_F(DetectTest, SomebodyElsesJobOrOneOnAnotherHostIsNotOurs) {
  host_ = "ml1";
  programs_.Answer("qstat -f -F json", QstatSampleFor("bob"));
  EXPECT_FALSE(Detect().in_job);
  host_ = "ml";
  programs_.Answer("qstat -f -F json", QstatSampleFor("alice"));
  EXPECT_FALSE(Detect().in_job);
  host_ = "ml10";
  EXPECT_FALSE(Detect().in_job);
}

TEST_F(DetectTest, TheNewestOfSeveralPbsJobsIsTaken) {
  programs_.Answer("qstat", R"text({"Jobs": {
    "1.s": {"Job_Owner": "alice@x", "job_state": "R", "exec_host": "n1/0", "stime": "Sun Nov 15 01:10:44 2026"},
    "2.s": {"Job_Owner": "alice@x", "job_state": "R", "exec_host": "n1/1", "stime": "Sun Nov 15 02:10:44 2026",
            "exec_vnode": "(n1:ncpus=1:ngpus=2)"},
    "3.s": {"Job_Owner": "alice@x", "job_state": "Q"}}})text");
  const Allocation found = Detect();
  EXPECT_EQ(found.job_id, "2.s");
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 0, 2}}));
  EXPECT_EQ(found.reasons.gpus, "qstat: ngpus of exec_vnode");
  EXPECT_EQ(found.warnings, std::vector<std::string>{"job 2.s is taken; you have more on this host: 1.s "
                                                     "(set PBS_JOBID to choose)"});
  variables_.Set("PBS_JOBID", "1.s");
  EXPECT_EQ(Detect().job_id, "1.s");
}

TEST_F(DetectTest, CutOffOrBinaryAnswersOfQstatAreWarnings) {
  programs_.Install("qsub");
  for (const std::string& output :
       {QstatSampleFor("alice").substr(0, 300), std::string("\x01\xff\x00garbage", 10), std::string("{}}")}) {
    programs_.Answer("qstat -f -F json", output);
    const Allocation found = Detect();
    EXPECT_FALSE(found.in_job);
    ASSERT_EQ(found.warnings.size(), 1u) << output;
    EXPECT_TRUE(found.warnings[0].starts_with("cannot ask PBS for your jobs: qstat printed '"));
  }
}

TEST_F(DetectTest, AQstatThatHangsIsAWarning) {
  programs_.Hang("qstat");
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kLocal);
  EXPECT_EQ(found.warnings,
            std::vector<std::string>{"cannot ask PBS for your jobs: 'qstat' did not end in time"});
}

TEST_F(DetectTest, AReachableQsubIsPbsWithoutAJob) {
  programs_.Answer("qstat -f -F json", "");
  programs_.Install("qsub");
  const Allocation found = Detect();
  EXPECT_EQ(found.scheduler, SchedulerKind::kPbs);
  EXPECT_FALSE(found.in_job);
}

// ---- MPI

TEST_F(DetectTest, AnMpiAroundUsIsSeen) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PALS_RANKID", "PMI_RANK", "PMIX_RANK"}) {
    variables_ = Variables({StrCat(name, "=1")});
    const Allocation found = Detect();
    EXPECT_EQ(found.scheduler, SchedulerKind::kMpi) << name;
    EXPECT_EQ(found.reasons.scheduler, name);
    EXPECT_EQ(found.started_by, name);
    EXPECT_EQ(found.hosts.size(), 1u);
  }
}

TEST_F(DetectTest, AWorldOfOneRankIsNoLaunch) {
  variables_ = Variables({"PMI_RANK=0", "PMI_SIZE=1"});
  EXPECT_EQ(Detect().started_by, "");
}

// ---- GPUs

TEST_F(DetectTest, DriversCountAndTheMaskLimitsThem) {
  probed_ = Probed(8, "h200", "nvml");
  EXPECT_EQ(Detect().hosts, (Hosts{{"n1", 0, 8}}));
  EXPECT_EQ(Detect().gpu_type, "h200");
  variables_.Set("CUDA_VISIBLE_DEVICES", "0,3");
  const Allocation found = Detect();
  EXPECT_EQ(found.hosts, (Hosts{{"n1", 0, 2}}));
  EXPECT_EQ(found.reasons.gpus, "nvml, limited by CUDA_VISIBLE_DEVICES");
  variables_.Set("CUDA_VISIBLE_DEVICES", "");
  EXPECT_EQ(Detect().hosts, (Hosts{{"n1", 0, 0}}));
}

TEST_F(DetectTest, TheMaskCountsWhenNobodyElseSpeaks) {
  variables_.Set("ZE_AFFINITY_MASK", "0.0,0.1");
  EXPECT_EQ(Detect().hosts, (Hosts{{"n1", 0, 2}}));
  EXPECT_EQ(Detect().reasons.gpus, "ZE_AFFINITY_MASK");
}

TEST_F(DetectTest, CardsAreTilesOnlyToTheSite) {
  variables_ = Variables({"PBS_JOBID=0.s", "PBS_NODEFILE=/aux/0.s"});
  SetFile("/aux/0.s", "n1\n");
  probed_ = Probed(6, "max_1550", "xpu-smi");
  probed_.counts_cards = true;
  EXPECT_EQ(Detect().hosts[0].gpus, 6);
  site_gpus_ = 12;
  const Allocation found = Detect();
  EXPECT_EQ(found.hosts[0].gpus, 12);
  EXPECT_EQ(found.reasons.gpus, "site 'aurora'");
  EXPECT_EQ(found.machine, "aurora");
  probed_ = Probed(4, "a100", "nvml");
  EXPECT_EQ(Detect().hosts[0].gpus, 4) << "a driver that counts GPUs knows better";
}

TEST_F(DetectTest, WhatIsDeclaredForThisMachineCountsThere) {
  declared_gpus_ = 3;
  EXPECT_EQ(Detect().hosts[0].gpus, 3);
  EXPECT_EQ(Detect().reasons.gpus, "overcap.yaml");
  EXPECT_EQ(probes_, 0);
}

TEST_F(DetectTest, ProblemsOfDriversAreWarnings) {
  probed_.problems = {"nvml cannot start: Driver/library version mismatch"};
  EXPECT_EQ(Detect().warnings, probed_.problems);
}

// ---- host files

TEST_F(DetectTest, AHostFileReplacesTheHosts) {
  SetSlurmSample("launch-env/slurm-22.05.8-batch-script.txt");
  programs_.Answer("squeue", "RUNNING\n");
  probed_.count = 0;
  hostfile_ = Hosts{{"n2", 1, -1}, {"n9", 3, -1}, {"n8", 0, 5}};
  const Allocation found = Detect();
  EXPECT_EQ(found.hosts, (Hosts{{"n2", 1, 2}, {"n9", 3, 0}, {"n8", 0, 5}}));
  EXPECT_EQ(found.reasons.hosts, "host file 'hosts.txt'");
  EXPECT_TRUE(found.in_job);
}

}  // namespace
}  // namespace overcap
