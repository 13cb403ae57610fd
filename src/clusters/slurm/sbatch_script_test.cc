// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/sbatch_script.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <utility>

#include "base/text.h"

namespace overcap {
namespace {

using Words = std::vector<std::string>;

SbatchRequest Request() {
  SbatchRequest request;
  request.spec.id = "20261115-0001";
  request.spec.name = "train";
  request.spec.command = {"python", "train.py"};
  request.folder = "/shared/jobs/20261115-0001";
  request.agent = {"/shared/bin/overcap", "agent", "/shared/jobs/20261115-0001"};
  return request;
}

// The words of a script's directives by the rules of sbatch 22.05: quotes of both kinds hold blanks and '#',
// a backslash takes what follows as it is, a directive ends with its line, all of them with the first
// command.
Words Directives(const std::string& script) {
  Words words;
  for (const std::string& line : Split(script, '\n')) {
    if (!line.starts_with("#SBATCH ")) {
      if (!line.starts_with('#')) break;
      continue;
    }
    std::string word;
    char quote = 0;
    for (size_t i = 8; i < line.size(); ++i) {
      const char c = line[i];
      if (c == '\\' && i + 1 < line.size()) {
        word += line[++i];
      } else if (quote != 0 ? c == quote : c == '"' || c == '\'') {
        quote = quote == 0 ? c : '\0';
      } else if (quote == 0 && c == '#') {
        break;
      } else if (quote == 0 && c == ' ') {
        words.push_back(std::exchange(word, ""));
      } else {
        word += c;
      }
    }
    EXPECT_EQ(quote, 0) << line;
    words.push_back(word);
  }
  return words;
}

// All that sbatch is told, wherever that stands.
Words Told(const SbatchRequest& request, const SbatchSettings& settings = {}) {
  const auto plan = PlanSbatch(request, settings);
  EXPECT_TRUE(plan) << plan.error().message;
  if (!plan) return {};
  Words told = plan->argv;
  const Words more = Directives(plan->script);
  told.insert(told.end(), more.begin(), more.end());
  return told;
}

bool Has(const Words& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string Refusal(const SbatchRequest& request, const SbatchSettings& settings = {}) {
  const auto plan = PlanSbatch(request, settings);
  EXPECT_FALSE(plan);
  if (plan) return "";
  EXPECT_EQ(plan.error().code, ErrorCode::kUsage);
  return plan.error().message;
}

TEST(SbatchScript, ASmallJobIsExactlyThis) {
  const auto plan = PlanSbatch(Request(), {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->argv, (Words{"sbatch", "--comment=overcap:20261115-0001", "--ignore-pbs", "--parsable"}));
  EXPECT_EQ(plan->script,
            "#!/bin/sh\n"
            "#SBATCH \"--job-name=train\"\n"
            "#SBATCH \"--nodes=1\"\n"
            "#SBATCH \"--ntasks-per-node=1\"\n"
            "#SBATCH \"--no-requeue\"\n"
            "#SBATCH \"--output=/shared/jobs/20261115-0001/slurm.log\"\n"
            "#SBATCH \"--open-mode=append\"\n"
            "#SBATCH \"--chdir=/shared/jobs/20261115-0001\"\n"
            "#SBATCH \"--export=ALL\"\n"
            "exec /shared/bin/overcap agent /shared/jobs/20261115-0001\n");
  EXPECT_EQ(plan->script_path, "/shared/jobs/20261115-0001/script.sh");
  EXPECT_TRUE(plan->notes.empty());
}

TEST(SbatchScript, ABigJobAsksForEverything) {
  SbatchRequest request = Request();
  request.spec.resources = {2, 0, 8, 4, 16, int64_t{32} << 30, 93784, "a40"};
  request.spec.array = *ParseArraySpec("0-99%10");
  request.spec.requeue = true;
  request.spec.hold = true;
  request.spec.priority = -5;
  request.after = {{12, false}, {13, true}, {14, false}};
  SbatchSettings settings;
  settings.partitions = {"short", "user-overcap"};
  settings.account = "lab-a";
  settings.qos = "labq";
  settings.warn_seconds = 90;
  settings.extra_args = {"--exclude=n3", "-x", "n4"};
  const Words told = Told(request, settings);
  for (const char* word :
       {"--partition=short,user-overcap", "--account=lab-a", "--qos=labq", "--nodes=2", "--ntasks-per-node=4",
        "--cpus-per-task=4", "--mem=32768M", "--time=1-02:03:04", "--gpus-per-node=a40:4", "--array=0-99%10",
        "--dependency=afterok:12:14,afterany:13", "--kill-on-invalid-dep=yes", "--hold", "--nice=5",
        "--requeue", "--signal=B:USR1@90", "--output=/shared/jobs/20261115-0001/slurm-%a.log"}) {
    EXPECT_TRUE(Has(told, word)) << word;
  }
  const Words argv = PlanSbatch(request, settings)->argv;
  EXPECT_EQ(Words(argv.end() - 4, argv.end()), (Words{"--exclude=n3", "-x", "n4", "--parsable"}));
}

TEST(SbatchScript, TheCommandIsKnownBeforeTheJobIs) {
  SbatchRequest request = Request();
  request.spec.resources = {2, 0, 8, 4, 16, int64_t{32} << 30, 93784, "a40"};
  request.spec.placement.node = "n3";
  request.after = {{12, false}};
  SbatchSettings settings;
  settings.partitions = {"short"};
  settings.account = "lab-a", settings.qos = "labq", settings.reservation = "course";
  settings.extra_args = {"--exclusive"};
  const Words argv = PlanSbatch(request, settings)->argv;
  EXPECT_EQ(argv, SbatchCommand(request.spec.id, request.spec.placement, settings));
  // On the command, where they win over variables such as SBATCH_ACCOUNT.
  EXPECT_EQ(argv, (Words{"sbatch", "--comment=overcap:20261115-0001", "--partition=short", "--account=lab-a",
                         "--qos=labq", "--reservation=course", "--nodelist=n3", "--ignore-pbs", "--exclusive",
                         "--parsable"}));
}

TEST(SbatchScript, WhatAScriptCannotSayIsOnTheCommandLine) {
  SbatchRequest request = Request();
  request.spec.name = "my HetJob";
  const auto plan = PlanSbatch(request, {});
  ASSERT_TRUE(plan);
  EXPECT_TRUE(Has(plan->argv, "--job-name=my HetJob"));
  EXPECT_EQ(plan->script.find("Het"), std::string::npos);
  EXPECT_EQ(plan->argv.back(), "--parsable");
  request.spec.name = "packjobs";
  EXPECT_TRUE(Has(PlanSbatch(request, {})->argv, "--job-name=packjobs"));
  request = Request();
  for (int64_t id = 1; id < 1000; ++id) request.after.push_back({1'000'000 + id, false});
  const Words argv = PlanSbatch(request, {})->argv;
  ASSERT_EQ(argv.size(), 5u);
  EXPECT_TRUE(argv[2].starts_with("--dependency=afterok:1000001:"));
}

RC_GTEST_PROP(SbatchScriptProperty, SbatchReadsBackTheName, (const std::string& name)) {
  SbatchRequest request = Request();
  request.spec.name = "n" + name;
  for (char& c : request.spec.name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7F) c = '"';
  }
  request.spec.name.resize(std::min<size_t>(request.spec.name.size(), 150));
  RC_ASSERT(Has(Told(request), "--job-name=" + request.spec.name));
}

TEST(SbatchScript, AnElasticJobAsksForARangeAndSurvivesNodes) {
  SbatchRequest request = Request();
  request.spec.resources.nodes = 2, request.spec.resources.max_nodes = 8, request.spec.resources.gpus = 4;
  const Words told = Told(request);
  EXPECT_TRUE(Has(told, "--nodes=2-8"));
  EXPECT_TRUE(Has(told, "--no-kill"));
  EXPECT_TRUE(Has(told, "--gpus-per-node=2"));
  for (const std::string& word : told) EXPECT_FALSE(word.starts_with("--ntasks")) << word;
}

TEST(SbatchScript, WhatDoesNotDivideIsRoundedUpAndSaid) {
  SbatchRequest request = Request();
  request.spec.resources = {2, 0, 3, 2, 5, 1, 61, ""};
  const auto plan = PlanSbatch(request, {});
  ASSERT_TRUE(plan);
  for (const char* word : {"--gpus=3", "--cpus-per-task=3", "--mem=1M", "--time=00:01:01"}) {
    EXPECT_TRUE(Has(Directives(plan->script), word)) << word;
  }
  EXPECT_EQ(plan->notes.size(), 3u);
}

TEST(SbatchScript, PercentSignsInThePathAreNoPattern) {
  SbatchRequest request = Request();
  request.folder = "/shared/100%j";
  EXPECT_TRUE(Has(Told(request), "--output=/shared/100%%j/slurm.log"));
  EXPECT_TRUE(Has(Told(request), "--chdir=/shared/100%j"));
}

TEST(SbatchScript, PathsThatSlurmWouldMisreadAreRefused) {
  SbatchRequest request = Request();
  request.folder = "/shared/a\n#SBATCH --account=other";
  EXPECT_NE(Refusal(request).find("control character"), std::string::npos);
  request = Request();
  request.folder = "/shared/a\\b";
  EXPECT_NE(Refusal(request).find("backslash"), std::string::npos);
  request = Request();
  request.agent[2] = "x\n#PBS -q other";
  EXPECT_NE(Refusal(request).find("control character"), std::string::npos);
  request = Request();
  request.folder = "jobs/1";
  EXPECT_NE(Refusal(request).find("absolute"), std::string::npos);
}

TEST(SbatchScript, AHostileNameStaysOneWordOnOneLine) {
  SbatchRequest request = Request();
  request.spec.name = "a\nb;$(rm -rf /) --array=1\x1b[31m";
  EXPECT_TRUE(Has(Told(request), "--job-name=a b;$(rm -rf /) --array=1 [31m"));
  request.spec.name = std::string(199, 'x') + "\xc3\xa9";
  EXPECT_TRUE(Has(Told(request), "--job-name=" + std::string(199, 'x')));
  request.spec.name = "";
  EXPECT_TRUE(Has(Told(request), "--job-name=python train.py"));
  request.spec.command = {"/opt/my tool", "fit", "--token=secret"};
  EXPECT_TRUE(Has(Told(request), "--job-name='/opt/my tool' fit"));
  request.spec.command = {"TOKEN=secret"};
  EXPECT_TRUE(Has(Told(request), "--job-name=20261115-0001"));
}

TEST(SbatchScript, ANodeCanBeNamed) {
  SbatchRequest request = Request();
  request.spec.placement.node = "n3";
  EXPECT_TRUE(Has(Told(request), "--nodelist=n3"));
  request.spec.placement.node = "n3\nn4";
  EXPECT_NE(Refusal(request).find("node"), std::string::npos);
}

TEST(SbatchScript, AJobThatGoesOnAfterItsTimeLimitMayBeRequeued) {
  SbatchRequest request = Request();
  EXPECT_TRUE(Has(Told(request), "--no-requeue"));
  request.spec.requeue_on_timeout = true;
  EXPECT_TRUE(Has(Told(request), "--requeue"));
}

RC_GTEST_PROP(SbatchScriptProperty, AShellReadsBackTheAgentsWords, (const Words& words)) {
  SbatchRequest request = Request();
  for (const std::string& word : words) {
    const bool control =
        std::any_of(word.begin(), word.end(), [](unsigned char c) { return c < ' ' || c == 0x7F; });
    if (!control) request.agent.push_back(word);
  }
  const auto plan = PlanSbatch(request, {});
  RC_ASSERT(bool(plan));
  const Words lines = Split(plan->script, '\n');
  RC_ASSERT(lines.size() == 11 && lines[10].empty() && lines[9].starts_with("exec "));
  const auto read = SplitWords(lines[9].substr(5));
  RC_ASSERT(read.has_value());
  RC_ASSERT(*read == request.agent);
}

Resources Gpus(int nodes, int gpus, std::string type) {
  Resources resources;
  resources.nodes = nodes;
  resources.gpus = gpus;
  resources.gpu_type = std::move(type);
  return resources;
}

const std::vector<SlurmGpuType> kTypes = {{"a40", "a40"}, {"2080_ti", "2080_ti"}, {"rtx_6000", "rtx_6000"}};

TEST(SbatchGpus, OneTypeIsAskedForAsGresAndSeveralByFeature) {
  SbatchSettings settings;
  settings.gpu_types = kTypes;
  EXPECT_EQ(*GpuOptions(Gpus(2, 4, "a40"), settings), Words{"--gpus-per-node=a40:2"});
  EXPECT_EQ(*GpuOptions(Gpus(1, 2, "2080_ti|rtx_6000"), settings),
            (Words{"--gpus-per-node=2", "--constraint=2080_ti|rtx_6000"}));
  EXPECT_EQ(*GpuOptions(Gpus(1, 2, "!2080_ti"), settings),
            (Words{"--gpus-per-node=2", "--constraint=a40|rtx_6000"}));
  EXPECT_EQ(*GpuOptions(Gpus(1, 2, "!v100"), settings), Words{"--gpus-per-node=2"});
  EXPECT_TRUE(GpuOptions(Gpus(1, 0, ""), settings)->empty());
}

TEST(SbatchGpus, AClusterMayPreferConstraintsOrHaveOneOfItsOwn) {
  SbatchSettings settings;
  settings.gpu_types = kTypes;
  settings.gpu_type_as_constraint = true;
  settings.constraint = "ib|opa";
  EXPECT_EQ(*GpuOptions(Gpus(1, 1, "a40"), settings),
            (Words{"--gpus-per-node=1", "--constraint=(ib|opa)&(a40)"}));
  EXPECT_EQ(*GpuOptions(Gpus(1, 0, ""), settings), Words{"--constraint=ib|opa"});
}

TEST(SbatchGpus, WhatTheClusterCannotBeAskedForIsSaid) {
  SbatchSettings settings;
  settings.gpu_types = kTypes;
  const auto none = GpuOptions(Gpus(1, 1, "v100"), settings);
  EXPECT_EQ(none.error().message, "no GPU here is of type 'v100'");
  EXPECT_EQ(none.error().hint, "this cluster has a40, 2080_ti, rtx_6000");
  settings.gpu_types[2].feature = "";
  EXPECT_FALSE(GpuOptions(Gpus(1, 1, "2080_ti|rtx_6000"), settings));
  EXPECT_EQ(*GpuOptions(Gpus(1, 1, "rtx_6000"), settings), Words{"--gpus-per-node=rtx_6000:1"});
}

TEST(SbatchGpus, WithoutAListOfTypesTheUsersWordsGoToSlurm) {
  EXPECT_EQ(*GpuOptions(Gpus(1, 1, "a40"), {}), Words{"--gpus-per-node=a40:1"});
  EXPECT_EQ(*GpuOptions(Gpus(1, 1, "a40,a100"), {}), (Words{"--gpus-per-node=1", "--constraint=a40|a100"}));
  EXPECT_FALSE(GpuOptions(Gpus(1, 1, "!a40"), {}));
  EXPECT_FALSE(GpuOptions(Gpus(1, 1, "a40|"), {}));
}

TEST(SbatchArgs, OptionsOfTheUsersPass) {
  for (const Words& args :
       {Words{"--exclude=n1"}, Words{"-x", "n1"}, Words{"--mem-per-gpu", "4G"}, Words{"--exclusive"},
        Words{"-Ok"}, Words{"-pdebug"}, Words{"--nodelist=n1"}, Words{}}) {
    EXPECT_TRUE(CheckSbatchArgs(args)) << Join(args, " ");
  }
}

TEST(SbatchArgs, OptionsThatOvercapSetsAreRefused) {
  for (const Words& args : {Words{"--array=1-3"}, Words{"--arr=1"}, Words{"-a1-3"}, Words{"--output", "x"},
                            Words{"-o", "x"}, Words{"--wrap=true"}, Words{"--parsable"}, Words{"-OW"},
                            Words{"--comment=overcap:x"}, Words{"--test-only"}, Words{"-D/"}}) {
    const auto checked = CheckSbatchArgs(args);
    ASSERT_FALSE(checked) << Join(args, " ");
    EXPECT_NE(checked.error().message.find("is set by overcap itself"), std::string::npos);
  }
}

TEST(SbatchArgs, WordsThatWouldBecomeTheScriptAreRefused) {
  for (const Words& args :
       {Words{"evil.sh"}, Words{"--exclude=n1", "evil.sh"}, Words{"--exclusive", "evil.sh"},
        Words{"-x", "n1", "evil.sh"}, Words{"--"}, Words{"-"}, Words{""}, Words{"-x"}, Words{"--mem=1\n"}}) {
    EXPECT_FALSE(CheckSbatchArgs(args)) << Join(args, " ");
  }
}

TEST(SbatchScript, SettingsThatAreNoNamesAreRefused) {
  SbatchSettings settings;
  settings.partitions = {"a,b"};
  EXPECT_NE(Refusal(Request(), settings).find("'a,b'"), std::string::npos);
  settings.partitions = {};
  settings.account = "x\n";
  EXPECT_NE(Refusal(Request(), settings).find("account"), std::string::npos);
  settings.account = "";
  settings.warn_seconds = 100'000;
  EXPECT_NE(Refusal(Request(), settings).find("100000 seconds"), std::string::npos);
}

}  // namespace
}  // namespace overcap
