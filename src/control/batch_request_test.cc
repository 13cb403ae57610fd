// SPDX-License-Identifier: Apache-2.0
#include "control/batch_request.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

using Words = std::vector<std::string>;

struct Applied {
  JobRequest request;
  std::vector<Dependency> after;
  std::string error;
};

Capabilities Everything() {
  Capabilities can;
  can.placement = can.warning = can.timeout_requeue = true;
  return can;
}

Applied Apply(std::string_view directives, JobRequest request = {}, const Capabilities& can = Everything()) {
  request.folder = "/home/ann/code";
  if (request.command.empty()) request.command = {"job.sh", "a", "b c"};
  const FoundScript found{"job.sh", "job.sh", StrCat("#!/bin/bash -l\n", directives, "echo\n")};
  Applied applied{std::move(request), {}, ""};
  const auto outcome = ApplyBatchScript(found, can, &applied.request, &applied.after);
  if (!outcome) applied.error = outcome.error().message;
  return applied;
}

TEST(BatchRequest, TheScriptRunsByItsInterpreterWithItsWords) {
  const JobRequest request = Apply("#SBATCH -N1\n").request;
  EXPECT_EQ(request.command, (Words{"/bin/bash", "-l", "job.sh", "a", "b c"}));
  EXPECT_EQ(request.batch_script, "job.sh");
}

TEST(BatchRequest, ResourcesBecomeFields) {
  const JobRequest request =
      Apply("#SBATCH -N 2 --ntasks-per-node=4 -c 3\n#SBATCH --gres=gpu:a40:4 --mem=16G -t 1-12:30\n").request;
  EXPECT_EQ(request.nodes, 2);
  EXPECT_EQ(request.ranks_per_node, 4);
  EXPECT_EQ(request.cpus, 12);
  EXPECT_EQ(request.gpus, 8);
  EXPECT_EQ(request.gpu_type, "a40");
  EXPECT_EQ(request.mem_bytes, int64_t{16} << 30);
  EXPECT_EQ(request.time_seconds, (36 * 60 + 30) * 60);
  EXPECT_TRUE(request.placement.args.empty());
  EXPECT_TRUE(request.notes.empty()) << request.notes[0];
}

TEST(BatchRequest, GpusAreUnderstoodInAllTheirForms) {
  const auto gpus = [](std::string_view directives) {
    const JobRequest request = Apply(StrCat("#SBATCH ", directives, "\n")).request;
    return StrCat(request.gpus.value_or(-1), " ", request.gpu_type, " ", Join(request.placement.args, " "));
  };
  EXPECT_EQ(gpus("--gpus=3"), "3  ");
  EXPECT_EQ(gpus("-G a40:2"), "2 a40 ");
  EXPECT_EQ(gpus("--gpus-per-node=2 -N3"), "6  ");
  EXPECT_EQ(gpus("--gpus-per-task=2 -n 4 -N2"), "8  --gpus-per-task=2");
  EXPECT_EQ(gpus("--gpus-per-task=a40:1 -n 2"), "2 a40 --gpus-per-task=a40:1");
  EXPECT_EQ(gpus("--gpus-per-task=1 --gres=gpu:2 -n 2"), "2  ");
  EXPECT_EQ(gpus("--gres=gpu"), "1  ");
  EXPECT_EQ(gpus("--gres=gpu:a40"), "1 a40 ");
  EXPECT_EQ(gpus("--gres=gres:gpu:2"), "2  ");
  EXPECT_EQ(gpus("--gres=gpu:2,scratch:10"), "2  --gres=scratch:10");
  EXPECT_EQ(gpus("--gres=gpu:a40:1,gpu:v100:1"), "-1  --gres=gpu:a40:1,gpu:v100:1");
  EXPECT_EQ(gpus("--gpus=a40:1,v100:1"), "-1  --gpus=a40:1,v100:1");
  EXPECT_EQ(gpus("--gres=none"), "-1  ");
  EXPECT_EQ(gpus("--gres=gpu:1 --gres=gpu:a40:2"), "2 a40 ");
}

TEST(BatchRequest, TimesAreMinutesUnlessTheySayOtherwise) {
  const auto seconds = [](std::string_view text) {
    const Applied applied = Apply(StrCat("#SBATCH -t ", text, "\n"));
    return applied.error.empty() ? applied.request.time_seconds.value_or(-1) : -2;
  };
  EXPECT_EQ(seconds("90"), 5400);
  EXPECT_EQ(seconds("10:30"), 630);
  EXPECT_EQ(seconds("4:00:00"), 14400);
  EXPECT_EQ(seconds("2-0"), 172800);
  EXPECT_EQ(seconds("1-1:1:1"), 90061);
  EXPECT_EQ(seconds("UNLIMITED"), -1);
  EXPECT_EQ(seconds("soon"), -2);
  EXPECT_EQ(seconds("1:2:3:4"), -2);
  EXPECT_EQ(seconds("-5"), -2);
}

TEST(BatchRequest, OnlyBSendsTheWarningToTheShellAlone) {
  EXPECT_TRUE(Apply("#SBATCH --signal=RB:USR1@60\n").request.warn_shell);
  EXPECT_FALSE(Apply("#SBATCH --signal=R:USR1@60\n").request.warn_shell);
  const JobRequest request = Apply("#SBATCH --signal=USR1@60\n").request;
  EXPECT_EQ(request.warn_seconds, 60);
  EXPECT_FALSE(request.warn_shell);
}

TEST(BatchRequest, PlacementAndPolicyBecomeFieldsAndTheRestGoesAsItIs) {
  const JobRequest request =
      Apply(
          "#SBATCH -p short,overcap -A lab-a -q high -w n1 -J train --requeue --signal=B:USR1@120 -H\n"
          "#SBATCH -a 0-9%2 -C bigmem --mail-type=END --exclusive -x n[3-4] --mem-per-cpu=2G\n")
          .request;
  EXPECT_EQ(request.placement.partitions, (Words{"short", "overcap"}));
  EXPECT_EQ(request.placement.account, "lab-a");
  EXPECT_EQ(request.placement.qos, "high");
  EXPECT_EQ(request.placement.node, "n1");
  EXPECT_EQ(request.placement.args, (Words{"--constraint=bigmem", "--mail-type=END", "--exclusive",
                                           "--exclude=n[3-4]", "--mem-per-cpu=2G"}));
  EXPECT_EQ(request.name, "train");
  EXPECT_EQ(request.requeue, true);
  EXPECT_EQ(request.warn_seconds, 120);
  EXPECT_TRUE(request.warn_shell);
  EXPECT_TRUE(request.hold);
  EXPECT_EQ(FormatArraySpec(request.array), "0-9%2");
}

TEST(BatchRequest, FlagsWinOverDirectives) {
  JobRequest flags;
  flags.nodes = 1;
  flags.gpus = 1;
  flags.cpus = 7;
  flags.time_seconds = 60;
  flags.requeue = false;
  flags.name = "mine";
  flags.placement.partitions = {"debug"};
  flags.placement.args = {"--exclusive=user"};
  const JobRequest request = Apply(
                                 "#SBATCH -N2 --gres=gpu:4 -c 3 -t 90 --requeue -J theirs -p short -A lab "
                                 "--exclusive --export=ALL,A=1\n",
                                 flags)
                                 .request;
  EXPECT_EQ(request.nodes, 1);
  EXPECT_EQ(request.gpus, 1);
  EXPECT_EQ(request.cpus, 7);
  EXPECT_EQ(request.time_seconds, 60);
  EXPECT_EQ(request.requeue, false);
  EXPECT_EQ(request.name, "mine");
  EXPECT_EQ(request.placement.partitions, Words{"debug"});
  EXPECT_EQ(request.placement.account, "lab");
  EXPECT_EQ(request.placement.args, (Words{"--exclusive", "--exclusive=user"}));
  EXPECT_EQ(request.env, Words{"A=1"});
}

TEST(BatchRequest, WhatIsNotAppliedIsSaid) {
  const JobRequest request = Apply(
                                 "#SBATCH -o out-%j.txt -e err.txt\n#SBATCH --signal=TERM@30\n"
                                 "#SBATCH -D /data --comment=x -N 1-4 -n 8 --export=NONE\n")
                                 .request;
  EXPECT_EQ(
      request.notes,
      (Words{
          "job.sh:3: '--signal=TERM@30' is not applied: the signal before the time limit is always USR1",
          "job.sh:4: '--chdir=/data' is not applied: the script runs in its captured copy; --workdir names "
          "another place",
          "job.sh:4: '--comment=x' is not applied: overcap sees to that itself",
          "job.sh:4: '--nodes=1-4' is not applied: the job gets 1 node, the least that it takes",
          "job.sh:4: '--export=NONE' is not applied: jobs get the variables of the shell that submits them",
          "what the script writes goes to the job's own log, not by --output=out-%j.txt --error=err.txt; "
          "overcap logs shows it"}));
  EXPECT_EQ(request.ranks_per_node, 8);
}

TEST(BatchRequest, ManyProcessesWithoutNodesGetOneNodeAndANote) {
  const JobRequest request = Apply("#SBATCH -n 8\n").request;
  EXPECT_EQ(request.ranks_per_node, 8);
  EXPECT_EQ(request.notes, Words{"the 8 processes of the script get one node; --nodes spreads them"});
}

TEST(BatchRequest, AClusterWithoutPlacesGetsTheResourcesAndANote) {
  const JobRequest request =
      Apply("#SBATCH -p short -A lab --gres=gpu:2 -C x --exclusive --signal=USR1@60\n", {}, {}).request;
  EXPECT_EQ(request.gpus, 2);
  EXPECT_EQ(request.placement, Placement{});
  EXPECT_FALSE(request.warn_seconds);
  EXPECT_EQ(request.notes,
            Words{"this cluster has no use for --partition=short --account=lab --constraint=x --exclusive "
                  "--signal=USR1@60"});
}

TEST(BatchRequest, DependenciesAreHandedOver) {
  const Applied applied = Apply("#SBATCH -d afterok:12:13,afterany:14\n");
  const std::vector<Dependency> expected = {{"12", false}, {"13", false}, {"14", true}};
  EXPECT_EQ(applied.after, expected);
  EXPECT_EQ(Apply("#SBATCH -d singleton\n").error,
            "job.sh:2: '--dependency=singleton' cannot be said to overcap");
}

TEST(BatchRequest, WhatCannotBeUnderstoodIsRefusedWithItsLine) {
  EXPECT_EQ(Apply("#SBATCH --mem=lots\n").error, "job.sh:2: '--mem=lots' is no size like 4G");
  EXPECT_EQ(Apply("#SBATCH -N some\n").error, "job.sh:2: '--nodes=some' is no number of nodes");
  EXPECT_EQ(Apply("#SBATCH -n 0\n").error, "job.sh:2: '--ntasks=0' is no number of processes or CPUs");
  EXPECT_EQ(Apply("#SBATCH --wrap=x\n").error,
            "job.sh:2: '--wrap=x' cannot stand in a script that overcap submits");
  EXPECT_EQ(Apply("#SBATCH --signal=@\n").error, "job.sh:2: '--signal=@' is no signal like USR1@120");
}

TEST(BatchRequest, ASweepTakesThePlaceOfTheScriptsArray) {
  JobRequest flags;
  flags.sweep = {{"lr", {"1", "2"}}};
  flags.array = {{{0, 1, 1}}, 0};
  const JobRequest request = Apply("#SBATCH -a 0-9\n", flags).request;
  EXPECT_EQ(FormatArraySpec(request.array), "0-1");
  EXPECT_EQ(request.notes, Words{"the sweep takes the place of the script's own array"});
}

class FindScript : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/overcap-script-XXXXXX";
    folder_ = mkdtemp(name);
    std::filesystem::create_directories(folder_ + "/code/sub");
    for (const std::string path : {"/code/job.sh", "/code/sub/inner.sh", "/outer.sh"})
      std::ofstream(folder_ + path) << "#!/bin/sh\n#SBATCH -N1\n";
    std::ofstream(folder_ + "/code/plain.sh") << "#!/bin/sh\necho\n";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The command that it becomes, "no script", or the message of the refusal.
  std::string Find(const std::string& word, const std::string& workdir = "") {
    JobRequest request;
    request.folder = folder_ + "/code";
    request.command = {word};
    request.workdir = workdir;
    const auto found = FindBatchScript(request);
    if (!found) return found.error().message;
    if (!*found) return "no script";
    std::vector<Dependency> after;
    EXPECT_TRUE(ApplyBatchScript(**found, {}, &request, &after));
    return StrCat((*found)->path, ": ", Join(request.command, " "));
  }
  std::string folder_;
};

TEST_F(FindScript, AFileWithDirectivesInTheFolderIsOne) {
  EXPECT_EQ(Find("job.sh"), "job.sh: /bin/sh job.sh");
  EXPECT_EQ(Find("./sub/../job.sh"), "job.sh: /bin/sh job.sh");
  EXPECT_EQ(Find("sub/inner.sh"), "sub/inner.sh: /bin/sh sub/inner.sh");
  EXPECT_EQ(Find(folder_ + "/code/job.sh"), "job.sh: /bin/sh job.sh");
  EXPECT_EQ(Find("job.sh", "sub"), "job.sh: /bin/sh ../job.sh");
  EXPECT_EQ(Find("sub/inner.sh", "sub"), "sub/inner.sh: /bin/sh inner.sh");
  EXPECT_EQ(Find("job.sh", "/"), StrCat("job.sh: /bin/sh ", folder_, "/code/job.sh"));
}

TEST_F(FindScript, OtherCommandsAreNone) {
  for (const std::string word : {"plain.sh", "true", "sub", "nosuch.sh", "/bin/sh"})
    EXPECT_EQ(Find(word), "no script");
}

TEST_F(FindScript, OneOutsideOfTheFolderIsRefused) {
  EXPECT_EQ(Find("../outer.sh"),
            "script '../outer.sh' is outside of the current folder, whose code the job gets");
}

}  // namespace
}  // namespace overcap
