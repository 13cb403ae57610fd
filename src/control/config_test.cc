// SPDX-License-Identifier: Apache-2.0
#include "control/config.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/text.h"
#include "control/config_schema.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr std::string_view kWhole = R"(# everything at once
cluster: big
clusters:
  local:
    gpus: [{type: a40, count: 4, memory: 48G}, {type: rtx_6000}]
    cpus: 64
    mem: 512G
  big: {driver: local}
defaults: {gpus: 2, cpus: 4, mem: 1.5G, time: 1h30m, requeue: yes, max_restarts: 3, ranks_per_node: 8}
code: {max_bytes_warn: 2G, max_files_warn: 5000}
jobs: {grace: 30s}
logs: {max: 4M}
retention:
  age: 7d
  size: none
workspaces:
  at: /local/$USER
  env: venv
  setup: [pip install -e ., make deps]
  exclude: build/ *.o
  keep: {last: 5, within: 2d}
)";

// The error of a text, or "fine".
std::string ErrorOf(std::string_view text) {
  Config config;
  const auto applied = ApplyConfigText(text, "overcap.yaml", &config);
  if (applied) return "fine";
  return applied.error().hint.empty() ? applied.error().message
                                      : StrCat(applied.error().message, " | ", applied.error().hint);
}

class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/overcap-config-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  std::string Write(const std::string& name, std::string_view text) const {
    const std::filesystem::path path = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

ConfigPlaces PlacesIn(const TempFolder& temp, const std::string& folder) {
  ConfigPlaces places;
  places.folder = temp.path() + folder;
  places.user_file = temp.path() + "/home/overcap.yaml";
  places.system_file = temp.path() + "/etc/overcap.yaml";
  return places;
}

TEST(Config, EveryKeyReachesItsField) {
  Config config;
  ASSERT_TRUE(ApplyConfigText(kWhole, "overcap.yaml", &config));
  EXPECT_EQ(config.cluster, "big");
  const ClusterConfig& local = config.clusters.at("local");
  const std::vector<GpuDeclaration> gpus = {{"a40", 4, int64_t{48} << 30}, {"rtx_6000", 1, 0}};
  EXPECT_EQ(local.gpus, gpus);
  EXPECT_EQ(local.cpus, 64);
  EXPECT_EQ(local.mem_bytes, int64_t{512} << 30);
  EXPECT_EQ(config.clusters.at("big").gpus, std::nullopt);
  EXPECT_EQ(config.defaults.gpus, 2);
  EXPECT_EQ(config.defaults.cpus, 4);
  EXPECT_EQ(config.defaults.mem_bytes, int64_t{3} << 29);
  EXPECT_EQ(config.defaults.time_seconds, 5400);
  EXPECT_TRUE(config.defaults.requeue);
  EXPECT_EQ(config.defaults.max_restarts, 3);
  EXPECT_EQ(config.defaults.ranks_per_node, 8);
  EXPECT_EQ(config.code.max_bytes_warn, int64_t{2} << 30);
  EXPECT_EQ(config.code.max_files_warn, 5000);
  EXPECT_EQ(config.jobs.grace_seconds, 30);
  EXPECT_EQ(config.logs.max_bytes, 4 << 20);
  EXPECT_EQ(config.retention.age_seconds, 7 * 86400);
  EXPECT_EQ(config.retention.size_bytes, 0);
}

constexpr std::string_view kSky = R"(cluster: sky
clusters:
  sky:
    driver: slurm
    partition: [short, overcap]
    account: lab-a
    qos: high
    constraint: "a40|rtx_6000"
    reservation: class
    args: --exclusive --mail-type='END,FAIL'
    programs: /opt/slurm/bin
    folder: /scratch/$USER/overcap
    mirror: /var/cache/overcap
    overcap_partitions: overcap, user-overcap
    gpu_type_as_constraint: true
    max_time: 2d
    max_gpus: 16
    defaults: {gpus: 0, time: none, requeue: true, requeue_on_timeout: yes, warn: 90s}
defaults: {gpus: 2, time: 1h, mem: 1G}
)";

TEST(Config, AClusterWithASchedulerHasSettingsOfItsOwn) {
  Config config;
  const auto applied = ApplyConfigText(kSky, "overcap.yaml", &config);
  ASSERT_TRUE(applied) << applied.error().message;
  ASSERT_TRUE(CheckClusterSettings(config));
  const SchedulerSettings& sky = config.clusters.at("sky").scheduler;
  EXPECT_EQ(sky.partitions, (std::vector<std::string>{"short", "overcap"}));
  EXPECT_EQ(sky.account + sky.qos + sky.reservation, "lab-ahighclass");
  EXPECT_EQ(sky.constraint, "a40|rtx_6000");
  EXPECT_EQ(sky.args, (std::vector<std::string>{"--exclusive", "--mail-type=END,FAIL"}));
  EXPECT_EQ(sky.programs, "/opt/slurm/bin");
  EXPECT_EQ(config.clusters.at("sky").folder, "/scratch/$USER/overcap");
  EXPECT_EQ(sky.mirror_folder, "/var/cache/overcap");
  EXPECT_EQ(sky.overcap_partitions, (std::vector<std::string>{"overcap", "user-overcap"}));
  EXPECT_TRUE(sky.gpu_type_as_constraint);
  EXPECT_EQ(sky.max_time_seconds, 2 * 86400);
  EXPECT_EQ(sky.max_gpus, 16);
}

TEST(Config, DefaultsOfAClusterComeBeforeThoseForAll) {
  Config config;
  ASSERT_TRUE(ApplyConfigText(kSky, "overcap.yaml", &config));
  const JobDefaults sky = DefaultsFor(config, "sky"), local = DefaultsFor(config, "local");
  EXPECT_EQ(sky.gpus, 0);
  EXPECT_EQ(sky.time_seconds, 0);
  EXPECT_EQ(sky.mem_bytes, int64_t{1} << 30);
  EXPECT_TRUE(sky.requeue && sky.requeue_on_timeout);
  EXPECT_EQ(sky.warn_seconds, 90);
  EXPECT_EQ(local, config.defaults);
  EXPECT_EQ(local.gpus, 2);
  EXPECT_EQ(ConfigFor(config, "sky").defaults, sky);
}

// What a file with such clusters is refused for, or "fine".
std::string RefusalOf(std::string_view text) {
  Config config;
  const auto applied = ApplyConfigText(text, "overcap.yaml", &config);
  if (!applied) return applied.error().message;
  const auto checked = CheckClusterSettings(config);
  return checked ? "fine" : checked.error().message;
}

TEST(Config, AKeyThatMeansNothingToTheDriverIsRefused) {
  EXPECT_EQ(RefusalOf("clusters:\n  local:\n    partition: short\n"),
            "overcap.yaml:3: 'clusters.local.partition' means nothing to a cluster of driver 'local'");
  EXPECT_EQ(RefusalOf("clusters:\n  sky: {driver: slurm,\n    gpus: [{type: a40}]}\n"),
            "overcap.yaml:3: 'clusters.sky.gpus' means nothing to a cluster of driver 'slurm'");
  EXPECT_EQ(RefusalOf("clusters: {sky: {folder: /x}}\n"),
            "overcap.yaml:1: 'clusters.sky.folder' means nothing to a cluster of driver 'local'");
  EXPECT_EQ(RefusalOf("clusters: {local: {defaults: {gpus: 1}}}\n"), "fine");
}

TEST(Config, AClusterWithTheNameOfADriverIsOfThatDriver) {
  EXPECT_EQ(RefusalOf("clusters: {slurm: {partition: short}}\n"), "fine");
  EXPECT_EQ(RefusalOf("clusters: {slurm: {driver: local, cpus: 4}}\n"), "fine");
}

TEST(Config, ListsFoldersAndTextsAreHeldToTheirKind) {
  const auto refusal = [](std::string_view line) {
    return RefusalOf(StrCat("clusters: {slurm: {", line, "}}\n"));
  };
  EXPECT_EQ(refusal("partition: 'a,b c'"),
            "overcap.yaml:1: 'clusters.slurm.partition' must be a list of names, not 'b c'");
  EXPECT_EQ(refusal("partition: [a, [b]]"),
            "overcap.yaml:1: 'clusters.slurm.partition' must be a list of names");
  EXPECT_EQ(refusal("partition: {a: b}"),
            "overcap.yaml:1: 'clusters.slurm.partition' must be a list of names");
  EXPECT_EQ(refusal("args: \"--x='a\""),
            "overcap.yaml:1: 'clusters.slurm.args' must be a list of words, not '--x='a'");
  EXPECT_EQ(refusal("account: \"a\\nb\""),
            "overcap.yaml:1: 'clusters.slurm.account' must be a text on one line, not 'a b'");
  EXPECT_EQ(refusal("folder: scratch"),
            "overcap.yaml:1: 'clusters.slurm.folder' must be an absolute folder, perhaps behind ~ or $NAME, "
            "not 'scratch'");
  EXPECT_EQ(refusal("defaults: {warn: 1d}"),
            "overcap.yaml:1: 'clusters.slurm.defaults.warn' must be at most 65535s, not 1d");
  EXPECT_EQ(refusal("defaults: {partition: a}"),
            "overcap.yaml:1: unknown key 'partition' in 'clusters.slurm.defaults'");
}

TEST(Config, OnlyKeysThatMeanSomethingAreShown) {
  Config config;
  ASSERT_TRUE(ApplyConfigText(kSky, "overcap.yaml", &config));
  std::map<std::string, std::string> shown;
  for (const EffectiveValue& value : EffectiveValues(config)) shown[value.path] = value.value;
  EXPECT_FALSE(shown.contains("clusters.sky.gpus"));
  EXPECT_FALSE(shown.contains("clusters.local.partition"));
  EXPECT_FALSE(shown.contains("clusters.sky.defaults.mem"));
  EXPECT_EQ(shown.at("clusters.sky.partition"), "short,overcap");
  EXPECT_EQ(shown.at("clusters.sky.args"), "--exclusive --mail-type=END,FAIL");
  EXPECT_EQ(shown.at("clusters.sky.defaults.warn"), "90s");
}

TEST(Config, WhatIsWrongIsSaidWithFileAndLine) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", "fine"},
      {"# nothing\n", "fine"},
      {"---\n", "fine"},
      {"---\ncluster: a\n...\n", "fine"},
      {"defaults:\n", "fine"},
      {"clusters: {local: {gpus: []}}\n", "fine"},
      {"\n\nclutsers: {}\n", "overcap.yaml:3: unknown key 'clutsers' | did you mean 'clusters'?"},
      {"defaults:\n  gpu: 1\n", "overcap.yaml:2: unknown key 'gpu' in 'defaults' | did you mean 'gpus'?"},
      {"clusters:\n  local:\n    gpu: 1\n",
       "overcap.yaml:3: unknown key 'gpu' in 'clusters.local' | did you mean 'gpus'?"},
      {"xyzzy: 1\n",
       "overcap.yaml:1: unknown key 'xyzzy' | one of: cluster, clusters, code, defaults, jobs, logs, "
       "mounts, retention, stores, workspaces"},
      {"defaults:\n  gpus: many\n", "overcap.yaml:2: 'defaults.gpus' must be a whole number, not 'many'"},
      {"defaults:\n  gpus: -1\n", "overcap.yaml:2: 'defaults.gpus' must be at least 0, not -1"},
      {"defaults:\n  gpus: 1e3\n", "overcap.yaml:2: 'defaults.gpus' must be a whole number, not '1e3'"},
      {"defaults: {cpus: 99999999}\n",
       "overcap.yaml:1: 'defaults.cpus' must be at most 1000000, not 99999999"},
      {"defaults:\n  time: soon\n",
       "overcap.yaml:2: 'defaults.time' must be a duration like 90s, 30m or 4h, not 'soon' | write it like "
       "90s, 30m, 4h, 2d or 1-12:00:00"},
      {"defaults:\n  requeue: maybe\n",
       "overcap.yaml:2: 'defaults.requeue' must be true or false, not 'maybe'"},
      {"jobs: {grace: 0s}\n", "overcap.yaml:1: 'jobs.grace' must be at least 1s, not 0s"},
      {"retention:\n  size: 50\n",
       "overcap.yaml:2: 'retention.size' must be a size like 16G, not '50' | write 50G, 50M or, for bytes, "
       "50B"},
      {"clusters:\n  local: {driver: lcal}\n",
       "overcap.yaml:2: 'clusters.local.driver' must be a driver, and there is no 'lcal' | did you mean "
       "'local'?"},
      {"clusters: {local: {driver: xyz}}\n",
       "overcap.yaml:1: 'clusters.local.driver' must be a driver, and there is no 'xyz' | drivers are: "
       "local, system, slurm, fake"},
      {"code: {max_bytes_warn: none}\n",
       "overcap.yaml:1: 'code.max_bytes_warn' must be a size like 16G, not 'none' | write it like 512M, 16G "
       "or 1.5T"},
      {"defaults: 5\n", "overcap.yaml:1: 'defaults' must have keys below it"},
      {"- a\n", "overcap.yaml:1: must be 'key: value' lines"},
      {"cluster: {a: b}\n", "overcap.yaml:1: 'cluster' must be a name of letters, digits, '.', '_' and '-'"},
      {"\ncluster:\n", "overcap.yaml:2: 'cluster' has no value"},
      {"clusters: {a/b: {}}\n", "overcap.yaml:1: 'a/b' must be a name of letters, digits, '.', '_' and '-'"},
      {"cluster: a\ncluster: b\n", "overcap.yaml:2: key 'cluster' stands here a second time"},
      {"[a]: b\n", "overcap.yaml:1: a key must be a word"},
      {"clusters: {local: {gpus: 4}}\n",
       "overcap.yaml:1: 'gpus' must be a list | write [{type: a40, count: 4}]"},
      {"clusters:\n  local:\n    gpus:\n      - typ: a40\n",
       "overcap.yaml:4: unknown key 'typ' in 'gpus' | did you mean 'type'?"},
      {"clusters: {local: {gpus: [{count: 2}]}}\n",
       "overcap.yaml:1: each of 'gpus' needs a 'type' | write {type: a40, count: 4}"},
      {"clusters: {local: {gpus: [{type: a40, count: 0}]}}\n",
       "overcap.yaml:1: 'count' of 'gpus' must be at least 1, not 0"},
      {"clusters: {local: {gpus: [a40]}}\n",
       "overcap.yaml:1: each of 'gpus' must be like {type: a40, count: 4}"},
      {"cluster: a\n---\nb: 2\n", "overcap.yaml:2: something stands behind the end of the document"},
  };
  for (const auto& [text, expected] : table) EXPECT_EQ(ErrorOf(text), expected) << text;
}

TEST(Config, BrokenYamlIsSaidWithItsLine) {
  const std::string error = ErrorOf("cluster: local\nclusters: {local: [\n");
  EXPECT_TRUE(error.starts_with("overcap.yaml:3: ")) << error;
  EXPECT_TRUE(error.ends_with(" | the file is no valid YAML")) << error;
}

TEST(Config, ANearerFileWinsKeyByKey) {
  const TempFolder temp;
  const std::string near = temp.Write("project/overcap.yaml", "defaults: {gpus: 1}\n");
  const std::string user = temp.Write("home/overcap.yaml", "\ndefaults: {gpus: 2, cpus: 2}\n");
  const std::string system =
      temp.Write("etc/overcap.yaml", "\n\ndefaults: {gpus: 3, cpus: 3, max_restarts: 3}\n");
  temp.Write("project/deep/er/x", "");
  const auto config = LoadConfig(PlacesIn(temp, "/project/deep/er"));
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->defaults.gpus, 1);
  EXPECT_EQ(config->defaults.cpus, 2);
  EXPECT_EQ(config->defaults.max_restarts, 3);
  EXPECT_EQ(config->files, (std::vector<std::string>{near, user, system}));
  const ConfigSetting& cpus = config->settings.at("defaults.cpus");
  EXPECT_EQ(StrCat(cpus.file, ":", cpus.line), user + ":2");
}

TEST(Config, ANamedFileStandsForTheNearestOne) {
  const TempFolder temp;
  temp.Write("project/overcap.yaml", "defaults: {gpus: 1}\n");
  temp.Write("home/overcap.yaml", "defaults: {cpus: 2}\n");
  ConfigPlaces places = PlacesIn(temp, "/project");
  places.named_file = temp.Write("other.yaml", "defaults: {gpus: 9}\n");
  const auto config = LoadConfig(places);
  ASSERT_TRUE(config);
  EXPECT_EQ(config->defaults.gpus, 9);
  EXPECT_EQ(config->defaults.cpus, 2);
  places.named_file = temp.path() + "/missing.yaml";
  EXPECT_EQ(LoadConfig(places).error().code, ErrorCode::kNotFound);
}

TEST(Config, AWrongValueIsAnErrorAlsoWhereANearerFileWins) {
  const TempFolder temp;
  temp.Write("project/overcap.yaml", "defaults: {gpus: 1}\n");
  const std::string user = temp.Write("home/overcap.yaml", "defaults: {gpus: many}\n");
  const auto config = LoadConfig(PlacesIn(temp, "/project"));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message, user + ":1: 'defaults.gpus' must be a whole number, not 'many'");
}

TEST(Config, FilesThatAreNoFilesAreErrors) {
  const TempFolder temp;
  std::filesystem::create_directories(temp.path() + "/project/overcap.yaml");
  const auto config = LoadConfig(PlacesIn(temp, "/project"));
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message,
            StrCat("cannot read '", temp.path(), "/project/overcap.yaml': Is a directory"));
}

TEST(Config, ADefaultClusterThatIsNotThereIsAnError) {
  const TempFolder temp;
  temp.Write("project/overcap.yaml", "# a comment\ncluster: bog\nclusters: {big: {driver: local}}\n");
  const auto config = LoadConfig(PlacesIn(temp, "/project"));
  ASSERT_FALSE(config);
  EXPECT_TRUE(config.error().message.ends_with("overcap.yaml:2: 'clusters' has no 'bog'"))
      << config.error().message;
  EXPECT_EQ(config.error().hint, "there is: big, local");
}

TEST(Config, NoFilesAreTheDefaults) {
  const TempFolder temp;
  const auto config = LoadConfig(PlacesIn(temp, ""));
  ASSERT_TRUE(config);
  EXPECT_TRUE(config->settings.empty());
  for (const EffectiveValue& value : EffectiveValues(*config)) EXPECT_EQ(value.file, "") << value.path;
}

TEST(Config, LinesAreAListOrATextWithALineEach) {
  for (const std::string_view text : {"workspaces: {setup: [pip install -e ., make deps]}\n",
                                      "workspaces:\n  setup: |\n    pip install -e .\n    make deps\n"}) {
    Config config;
    ASSERT_TRUE(ApplyConfigText(text, "overcap.yaml", &config));
    EXPECT_EQ(config.workspaces.setup, (std::vector<std::string>{"pip install -e .", "make deps"}));
  }
  EXPECT_EQ(ErrorOf("workspaces: {env: pipenv}\n"),
            "overcap.yaml:1: 'workspaces.env' must be conda, venv or none, not 'pipenv'");
}

TEST(Config, ShownValuesAreReadBackAsTheSame) {
  Config config;
  ASSERT_TRUE(ApplyConfigText(kWhole, "overcap.yaml", &config));
  for (const ConfigKey& key : ConfigKeys()) {
    if (key.type == ConfigType::kGpus || key.type == ConfigType::kLines) continue;  // shown on one line
    const ConfigField field = key.field(config, "local");
    const std::string shown = ShowValue(key, field);
    if (IsRule(key, field) || shown == "-1") continue;  // what no file has set
    ASSERT_TRUE(SetFromText(key, field, shown)) << key.path;
    EXPECT_EQ(ShowValue(key, field), shown) << key.path;
  }
}

TEST(Config, WhatARuleDecidesIsShownAsTheRule) {
  std::map<std::string, std::string> shown;
  for (const EffectiveValue& value : EffectiveValues({})) shown[value.path] = value.value;
  EXPECT_EQ(shown["defaults.gpus"], "1 where there are GPUs");
  EXPECT_EQ(shown["defaults.cpus"], "share");
  EXPECT_EQ(shown["defaults.ranks_per_node"], "one per GPU");
  EXPECT_EQ(shown["clusters.local.cpus"], "detected");
  EXPECT_EQ(shown["clusters.local.mem"], "detected");
  EXPECT_EQ(shown["logs.max"], "the smaller of 10G and a tenth of its file system");
  Config config;
  ASSERT_TRUE(ApplyConfigText("defaults: {gpus: 0}\n", "overcap.yaml", &config));
  EXPECT_EQ(config.settings["defaults.gpus"].value, "0");
  ASSERT_TRUE(ApplyConfigText("logs: {max: none}\n", "overcap.yaml", &config));
  EXPECT_EQ(config.settings["logs.max"].value, "none");
}

TEST(Config, AFileWithAnErrorChangesNothing) {
  Config config;
  ASSERT_FALSE(ApplyConfigText("defaults: {gpus: 7}\nxyzzy: 1\n", "overcap.yaml", &config));
  EXPECT_EQ(config.defaults.gpus, kGpusByMachine);
  EXPECT_TRUE(config.settings.empty());
}

// Cut off anywhere, or with bytes changed, a file is taken or refused with its line; nothing else may happen.
void ExpectTakenOrRefused(const std::string& text) {
  Config config;
  const auto applied = ApplyConfigText(text, "overcap.yaml", &config);
  if (!applied) {
    EXPECT_EQ(applied.error().code, ErrorCode::kUsage);
    EXPECT_TRUE(applied.error().message.starts_with("overcap.yaml:")) << applied.error().message;
  }
}

TEST(Config, TruncatedFilesAreTakenOrRefused) {
  for (size_t size = 0; size <= kWhole.size(); ++size)
    ExpectTakenOrRefused(std::string(kWhole.substr(0, size)));
}

TEST(Config, MutatedFilesAreTakenOrRefused) {
  constexpr std::string_view kOdd =
      "{}[]:,-#&*!|>'\"%@`?~<\\\n\t \0\x80\xff"
      "09azAZ";
  SeededRandom random(20260101);
  for (int round = 0; round < 3000; ++round) {
    std::string text(kWhole);
    for (uint64_t change = 1 + random.Below(6); change > 0; --change) {
      const size_t at = random.Below(text.size());
      const char odd = kOdd[random.Below(kOdd.size())];
      switch (random.Below(3)) {
        case 0:
          text[at] = odd;
          break;
        case 1:
          text.insert(at, 1 + random.Below(3), odd);
          break;
        default:
          text.erase(at, 1 + random.Below(8));
      }
    }
    ExpectTakenOrRefused(text);
  }
}

TEST(Config, DeepAndCircularDocumentsAreRefused) {
  EXPECT_NE(ErrorOf(std::string(100'000, '[')), "fine");
  EXPECT_NE(ErrorOf("clusters: &a {local: *a}\n"), "fine");
  EXPECT_NE(ErrorOf("clusters: {local: {gpus: &a [*a]}}\n"), "fine");
}

}  // namespace
}  // namespace overcap
