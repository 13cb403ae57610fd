// SPDX-License-Identifier: Apache-2.0
#include "launch/site/site.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <stdlib.h>

#include "base/text.h"
#include "launch/site/built_in_sites.h"
#include "launch/site/site_file.h"

namespace overcap {
namespace {

// Why the text is refused: "file:line: message|hint".
std::string Why(const std::string& text) {
  const auto site = ParseSiteFile(text, "s.yaml");
  if (site) return "taken";
  EXPECT_EQ(site.error().code, ErrorCode::kUsage);
  return site.error().message + "|" + site.error().hint;
}

class Sites : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/overcap-site-XXXXXX";
    root_ = mkdtemp(name);
    places_.user_folder = root_ + "/user";
    places_.system_folder = root_ + "/system";
    places_.built_in = false;
    std::filesystem::create_directories(places_.user_folder);
    std::filesystem::create_directories(places_.system_folder);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ + "/" + name) << text;
    return root_ + "/" + name;
  }
  // The name of the site found, "-" when there is none, "! message" when that fails.
  std::string Found(const std::string& host, const std::vector<std::string>& variables = {}) const {
    const auto site = FindSite(host, Variables(variables), places_);
    if (!site) return "! " + site.error().message;
    return *site ? (*site)->name : "-";
  }

  std::string root_;
  SitePlaces places_;
};

std::string BuiltInFor(const std::string& host, const std::vector<std::string>& variables = {}) {
  const auto site = FindSite(host, Variables(variables), SitePlaces{"", "", "", true});
  if (!site) return "! " + site.error().message;
  return *site ? (*site)->name : "-";
}

TEST(SiteFile, SetsEveryKeyOfTheTable) {
  const auto site = ParseSiteFile(R"(
name: big
match:
  - hosts: [big*, "*.big.org"]
  - env: {SYSTEM: big}
gpus: 8
gpu_type: h100
slots: 16
launcher: mpiexec
launcher_program: /opt/my mpi/mpiexec
launcher_args: [--no-vni, "--x=a b"]
cpu_bind: depth
env: {A: "1", B: ""}
ssh_options: []
module_paths: [/soft/modulefiles]
modules: [gcc, conda]
python:
  program: python3.12
  conda: micromamba
  conda_root: /soft/mamba
  conda_environment: ml
  venv: ours
)",
                                  "s.yaml");
  ASSERT_TRUE(site) << site.error().message;
  SiteFacts want;
  want.name = "big";
  want.gpus = 8;
  want.gpu_type = "h100";
  want.slots = 16;
  want.launcher = "mpiexec";
  want.launcher_program = "/opt/my mpi/mpiexec";
  want.launcher_args = {"--no-vni", "--x=a b"};
  want.cpu_bind = "depth";
  want.env = {{"A", "1"}, {"B", ""}};
  want.ssh_options.emplace();
  want.module_paths = {"/soft/modulefiles"};
  want.modules = {"gcc", "conda"};
  want.python = {"python3.12", "micromamba", "/soft/mamba", "ml", "ours"};
  EXPECT_EQ(site->facts, want);
  ASSERT_EQ(site->matches.size(), 2u);
  EXPECT_EQ(site->matches[0].hosts, (std::vector<std::string>{"big*", "*.big.org"}));
  EXPECT_EQ(site->matches[1].env.at("SYSTEM"), "big");
}

TEST(SiteFile, ALonelyMatchNeedsNoList) {
  const auto site = ParseSiteFile("match: {hosts: [a]}", "s.yaml");
  ASSERT_TRUE(site) << site.error().message;
  EXPECT_EQ(site->matches.size(), 1u);
}

TEST(SiteFile, SaysWhichLineIsWrongAndWhatWasMeant) {
  EXPECT_EQ(Why("name: a\n\ngpu: 4\n"), "s.yaml:3: unknown key 'gpu'|did you mean 'gpus'?");
  EXPECT_EQ(Why("python: {cond: conda}"), "s.yaml:1: unknown key 'cond' in 'python'|did you mean 'conda'?");
  EXPECT_EQ(Why("match:\n  hosts: [a]\n  zzzzzzzz: [b]\n"),
            "s.yaml:3: unknown key 'zzzzzzzz' in 'match'|one of: env, hosts");
  EXPECT_EQ(Why("gpus: 4\ngpus: 5\n"), "s.yaml:2: key 'gpus' stands here a second time|");
  EXPECT_EQ(Why("env:\n  A: 1\n  A: 2\n"), "s.yaml:3: key 'A' stands here a second time|");
}

TEST(SiteFile, RefusesWhatIsOfAnotherType) {
  EXPECT_EQ(Why("gpus: four"), "s.yaml:1: 'gpus' must be a whole number, not 'four'|");
  EXPECT_EQ(Why("gpus: -1"), "s.yaml:1: 'gpus' must be from 0 to 1024, not -1|");
  EXPECT_EQ(Why("gpus: [4]"), "s.yaml:1: 'gpus' must be a whole number|");
  EXPECT_EQ(Why("gpus:\n"), "s.yaml:1: 'gpus' has no value|");
  EXPECT_EQ(Why("modules: conda"), "s.yaml:1: 'modules' must be a list like [one, two]|");
  EXPECT_EQ(Why("modules: [[a]]"), "s.yaml:1: each of 'modules' must be one line of text|");
  EXPECT_EQ(Why("modules: [\"a\\nb\"]"), "s.yaml:1: 'modules' must be one line of text|");
  EXPECT_EQ(Why("launcher: slurm"),
            "s.yaml:1: 'launcher' must be srun, mpiexec, mpirun, ssh or local, not 'slurm'|");
  EXPECT_EQ(Why("python: conda"), "s.yaml:1: 'python' must have keys below it|");
  EXPECT_EQ(Why("env: {1A: x}"), "s.yaml:1: '1A' in 'env' is no name of a variable|");
  EXPECT_EQ(Why("env: {A: [x]}"), "s.yaml:1: each of 'env' must be one line of text|");
  EXPECT_EQ(Why("python: {venv: ../x}"),
            "s.yaml:1: 'python.venv' must be a name of letters, digits, '.', '_' and '-', not '../x'|");
  EXPECT_EQ(Why("- a\n- b\n"), "s.yaml:1: must be 'key: value' lines|");
}

TEST(SiteFile, RefusesAnEmptyMatch) {
  const std::string hint = "|say which machine it is by 'hosts' or 'env'";
  EXPECT_EQ(Why("match: {}"), "s.yaml:1: 'match' is empty" + hint);
  EXPECT_EQ(Why("match: []"), "s.yaml:1: 'match' is empty" + hint);
  EXPECT_EQ(Why("match: [{hosts: [a]}, {env: {}}]"), "s.yaml:1: 'match' is empty" + hint);
}

TEST(SiteFile, SurvivesWhatIsNoYaml) {
  EXPECT_NE(Why("gpus: [4\n").find("s.yaml:"), std::string::npos);
  EXPECT_NE(Why("match: {hosts: [*.org]}").find("must stand in quotes"), std::string::npos);
  EXPECT_NE(Why("a: &a [x]\nmodules: *a\n").find("|"), std::string::npos);
  EXPECT_NE(Why("modules: &m [x]\nlauncher_args: *m\n").find("alias"), std::string::npos);
  EXPECT_EQ(Why("gpus: 4\n---\ngpus: 5\n"),
            "s.yaml:2: something stands behind the end of the document|the file is no valid YAML");
  EXPECT_NE(Why(std::string(30000, '[')), "taken");
  EXPECT_NE(Why("modules: " + std::string(20, '[') + std::string(20, ']')).find("too deep"),
            std::string::npos);
  EXPECT_EQ(Why(""), "taken");
  EXPECT_EQ(Why("# nothing\n"), "taken");
}

RC_GTEST_PROP(SiteFile, NeverCrashesOnDamagedFiles, ()) {
  const auto sites = BuiltInSites();
  std::string text(sites[*rc::gen::inRange<size_t>(0, sites.size())].text);
  const int changes = *rc::gen::inRange(1, 6);
  for (int i = 0; i < changes; ++i) {
    const size_t at = *rc::gen::inRange<size_t>(0, text.size());
    text.replace(
        at, *rc::gen::inRange<size_t>(0, 3),
        *rc::gen::element<std::string>("", "[", "}", ": ", "\n", "*", "&a ", "\"", "- ", "\t", "#", "\xff"));
  }
  const auto site = ParseSiteFile(text, "s.yaml");
  const bool fine =
      site || site.error().message.starts_with("s.yaml:");  // RC_ASSERT looks at both sides of ||
  RC_ASSERT(fine);
}

// The rows of the table of keys in the manual: key, meaning.
std::map<std::string, std::string> DocumentedKeys() {
  std::ifstream page(OVERCAP_TEST_DATA "/../../docs/formats/site-file.md");
  std::map<std::string, std::string> keys;
  for (std::string line; std::getline(page, line);) {
    const std::vector<std::string> cells = Split(line, '|');
    if (cells.size() != 5 || !Trim(cells[1]).starts_with('`')) continue;
    const std::string_view key = Trim(cells[1]);
    keys[std::string(key.substr(1, key.size() - 2))] = Trim(cells[3]);
  }
  return keys;
}

TEST(SiteKeysInTheManual, AreThoseOfTheTable) {
  std::map<std::string, std::string> keys;
  for (const SiteKey& key : SiteKeys()) keys[std::string(key.path)] = key.description;
  EXPECT_EQ(DocumentedKeys(), keys);
}

TEST_F(Sites, ThePlacesAreTakenInTheirOrder) {
  EXPECT_EQ(Found("n1"), "-");
  Write("system/cluster.yaml", "match: {hosts: [n*]}");
  EXPECT_EQ(Found("n1"), "cluster");
  Write("user/mine.yml", "match: {hosts: ['n?']}");
  EXPECT_EQ(Found("n1"), "mine");
  EXPECT_EQ(Found("n10"), "cluster");
  places_.named_file = Write("named.yaml", "name: chosen\nmatch: {hosts: [nobody]}");
  EXPECT_EQ(Found("n1"), "chosen");
}

TEST_F(Sites, TheMostParticularMatchOfAPlaceWinsThenTheFirstByName) {
  Write("user/a.yaml", "match: {hosts: [n*]}");
  Write("user/b.yaml", "match: {hosts: [n*], env: {SYSTEM: \"t*\"}}");
  Write("user/c.yaml", "match: {hosts: [n*]}");
  EXPECT_EQ(Found("n1"), "a");
  EXPECT_EQ(Found("n1", {"SYSTEM=test"}), "b");
  EXPECT_EQ(Found("n1", {"SYSTEM=prod"}), "a");
}

TEST_F(Sites, AFileWithoutMatchFitsOnlyByItsName) {
  const std::string file = Write("user/a.yaml", "gpus: 2");
  EXPECT_EQ(Found("n1"), "-");
  places_.named_file = file;
  EXPECT_EQ(Found("n1"), "a");
  EXPECT_EQ((*FindSite("n1", Variables(), places_))->reason, "OVERCAP_SITE");
}

TEST_F(Sites, DevNullMeansNoSite) {
  Write("user/a.yaml", "match: {hosts: [n1]}");
  places_.named_file = "/dev/null";
  EXPECT_EQ(Found("n1"), "-");
}

TEST_F(Sites, HostNamesFitWithAndWithoutTheirDomainInAnyCase) {
  Write("user/a.yaml", "match: {hosts: [login1, '*.big.org']}");
  EXPECT_EQ(Found("login1"), "a");
  EXPECT_EQ(Found("LOGIN1.small.org"), "a");
  EXPECT_EQ(Found("n7.BIG.org"), "a");
  EXPECT_EQ(Found("login10"), "-");
  EXPECT_EQ(Found("n7.big.org.evil"), "-");
}

TEST_F(Sites, AVariableMustBeSetAndFit) {
  Write("user/a.yaml", "match: {env: {A: '*', B: b}}");
  EXPECT_EQ(Found("n1", {"A=", "B=b"}), "a");
  EXPECT_EQ(Found("n1", {"B=b"}), "-");
  EXPECT_EQ(Found("n1", {"A=1", "B=bb"}), "-");
}

TEST_F(Sites, ABrokenFileIsNamedEvenWhenAnotherFits) {
  Write("user/a.yaml", "match: {hosts: [n1]}");
  Write("user/z.yaml", "gpu: 1");
  EXPECT_EQ(Found("n1"), "! " + root_ + "/user/z.yaml:1: unknown key 'gpu'");
}

TEST_F(Sites, OnlyVisibleYamlFilesCount) {
  Write("user/README.txt", "no: yaml: at all");
  Write("user/.hidden.yaml", "gpu: 1");
  Write("user/a.yaml~", "gpu: 1");
  EXPECT_EQ(Found("n1"), "-");
}

TEST_F(Sites, ANamedFileMustBeThere) {
  places_.named_file = root_ + "/none.yaml";
  const auto site = FindSite("n1", Variables(), places_);
  ASSERT_FALSE(site);
  EXPECT_EQ(site.error().code, ErrorCode::kUsage);
  EXPECT_EQ(site.error().message, "no site file '" + places_.named_file + "'");
  EXPECT_EQ(site.error().hint, "it is named by OVERCAP_SITE");
  places_.named_file = root_;
  EXPECT_EQ(Found("n1"), "! the site file '" + root_ + "' is no plain file");
  places_.named_file = Write("large.yaml", std::string(70000, '#'));
  EXPECT_EQ(Found("n1"), "! the site file '" + places_.named_file + "' is larger than 64 KiB");
}

TEST(SitePlacesOf, FollowTheVariables) {
  const SitePlaces home = DefaultSitePlaces(Variables({"HOME=/h"}));
  EXPECT_EQ(home.user_folder, "/h/.config/overcap/sites");
  EXPECT_EQ(home.system_folder, "/etc/overcap/sites");
  const SitePlaces named =
      DefaultSitePlaces(Variables({"HOME=/h", "XDG_CONFIG_HOME=/c", "OVERCAP_SITE=x.yaml"}));
  EXPECT_EQ(named.user_folder, "/c/overcap/sites");
  EXPECT_EQ(named.named_file, "x.yaml");
  EXPECT_EQ(DefaultSitePlaces(Variables()).user_folder, "");
}

TEST(BuiltInSites, KnowTheirMachines) {
  EXPECT_EQ(BuiltInFor("x4102c5s2b0n0"), "aurora");
  EXPECT_EQ(BuiltInFor("aurora-uan-0009"), "aurora");
  EXPECT_EQ(BuiltInFor("x1921c1s0b0n0"), "sunspot");
  EXPECT_EQ(BuiltInFor("uan-0001"), "sunspot");
  EXPECT_EQ(BuiltInFor("x3005c0s13b0n0.hsn.cm.polaris.alcf.anl.gov"), "polaris");
  EXPECT_EQ(BuiltInFor("x3005c0s13b0n0", {"PBS_O_HOST=polaris-login-02"}), "polaris");
  EXPECT_EQ(BuiltInFor("x3005c0s13b0n0", {"PBS_O_HOST=sirius-login-01"}), "sirius");
  EXPECT_EQ(BuiltInFor("sophia-gpu-07"), "sophia");
  EXPECT_EQ(BuiltInFor("frontier00123"), "frontier");
  EXPECT_EQ(BuiltInFor("login05", {"LMOD_SYSTEM_NAME=frontier"}), "frontier");
  EXPECT_EQ(BuiltInFor("nid001234", {"NERSC_HOST=perlmutter"}), "perlmutter");
}

TEST(BuiltInSites, LeaveOtherMachinesAlone) {
  for (const char* host :
       {"nid001234", "x3", "x300-laptop", "x9000c0s0b0n0", "localhost", "login1", "node01", ""}) {
    EXPECT_EQ(BuiltInFor(host), "-") << host;
  }
}

TEST(BuiltInSites, BeginWithTheirMatchAndAreReadWithoutAnError) {
  for (const BuiltInSite& built_in : BuiltInSites()) {
    const auto site = ParseSiteFile(built_in.text, std::string(built_in.name));
    ASSERT_TRUE(site) << site.error().message;
    EXPECT_FALSE(site->matches.empty()) << built_in.name;
    EXPECT_LT(built_in.text.find("\nmatch:"), built_in.text.find("\ngpus:")) << built_in.name;
  }
  EXPECT_EQ(BuiltInSites().size(), 7u);
}

TEST(BuiltInSites, SayWhatTheirLaunchesNeed) {
  const auto site = FindSite("x4102c5s2b0n0", Variables(), SitePlaces{"", "", "", true});
  ASSERT_TRUE(site && *site);
  EXPECT_EQ((*site)->file, "built in");
  EXPECT_EQ((*site)->gpus, 12);
  EXPECT_EQ((*site)->launcher, "mpiexec");
  EXPECT_EQ(Split((*site)->cpu_bind, ':').size(), 13u);  // "list" and twelve ranges
  EXPECT_EQ((*site)->modules, std::vector<std::string>{"frameworks"});
  EXPECT_EQ((*site)->reason, "host name 'x4102c5s2b0n0' fits 'x4[0-9][0-9][0-9]c*s*b*n*'");
}

}  // namespace
}  // namespace overcap
