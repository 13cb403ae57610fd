// SPDX-License-Identifier: Apache-2.0
#include "clusters/slurm/slurm_view.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>
#include <unistd.h>

#include "base/text.h"

namespace overcap {
namespace {

std::string Recorded(std::string_view name) {
  std::ifstream file(StrCat(OVERCAP_TEST_DATA "/slurm-22.05.8/", name), std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Answers with what a real Slurm once said, under the mark that it is asked with.
class RecordedSlurm : public SlurmContext {
 public:
  explicit RecordedSlurm(const std::string& root) : SlurmContext(Settings(root)) {}

  Result<std::string> Program(std::string_view name) const override { return StrCat("/slurm/", name); }
  Result<ToolAnswer> CallProgram(SpawnRequest request, std::chrono::milliseconds) override {
    const std::vector<std::string>& argv = request.argv;
    const std::string name = argv[0] == "sacctmgr" ? StrCat("sacctmgr ", argv[5]) : argv[0];
    calls[name] += 1;
    if (away) return ToolAnswer{{1, 0}, "", "slurm_load_jobs error: Unable to contact slurm controller\n"};
    if (argv[0] == "squeue") return Marked("squeue-marked.txt", argv.back());
    if (argv[0] == "sinfo") return Marked("sinfo-marked.txt", argv.back());
    if (argv.back() == "config") return ToolAnswer{{0, 0}, Recorded("scontrol-show-config.txt"), ""};
    if (argv[0] == "scontrol") return ToolAnswer{{0, 0}, Recorded("scontrol-show-partition.txt"), ""};
    if (!accounts)
      return ToolAnswer{{1, 0}, "", "You are not running a supported accounting_storage plugin\n"};
    return ToolAnswer{{0, 0}, Recorded(StrCat("sacctmgr-", argv[5], ".txt")), ""};
  }

  std::map<std::string, int> calls;
  bool away = false, accounts = true;

 private:
  static ClusterSettings Settings(const std::string& root) {
    ClusterSettings settings;
    settings.name = "sky", settings.driver = "slurm", settings.root = root;
    // The mirror of this test alone, wherever mirrors are kept.
    settings.scheduler.programs = root;
    return settings;
  }

  static ToolAnswer Marked(std::string_view name, const std::string& format) {
    constexpr std::string_view kRecordedMark = "Mark1234";
    const std::string mark = format.substr(format.rfind('\x1f') + 1);
    std::string text = Recorded(name);
    for (size_t at = 0; (at = text.find(kRecordedMark, at)) != std::string::npos; at += mark.size()) {
      text.replace(at, kRecordedMark.size(), mark);
    }
    return {{0, 0}, std::move(text), ""};
  }
};

class SlurmViewTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = StrCat(testing::TempDir(), "view-XXXXXX");
    ASSERT_NE(mkdtemp(root_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string root_;
};

constexpr int64_t kLong = 600'000'000;

TEST_F(SlurmViewTest, ThePictureHasNodesPartitionsLabsAndJobs) {
  RecordedSlurm slurm(root_);
  SlurmView view(&slurm);
  const auto picture = view.Picture({kLong, kLong});
  ASSERT_TRUE(picture) << picture.error().message;
  EXPECT_EQ(picture->nodes.size(), 4u);
  EXPECT_EQ(picture->partitions.size(), 5u);
  ASSERT_NE(FindLab(*picture, "lab-b"), nullptr);
  EXPECT_EQ(FindLab(*picture, "lab-b")->gpu_cap, 8);
  ASSERT_NE(FindQos(*picture, "p_debug"), nullptr);
  EXPECT_EQ(FindQos(*picture, "p_debug")->gpus_per_user, 2);
  EXPECT_FALSE(picture->jobs.empty());
  EXPECT_EQ(picture->stale, "");
  EXPECT_TRUE(picture->notes.empty());
}

TEST_F(SlurmViewTest, WhoLooksAgainAsksNobody) {
  RecordedSlurm slurm(root_);
  SlurmView view(&slurm);
  ASSERT_TRUE(view.Picture({kLong, kLong}));
  ASSERT_TRUE(view.Picture({kLong, kLong}));
  RecordedSlurm other(root_);  // another process of this user
  ASSERT_TRUE(SlurmView(&other).Picture({kLong, kLong}));
  EXPECT_EQ(slurm.calls, (std::map<std::string, int>{{"squeue", 1},
                                                     {"sinfo", 1},
                                                     {"scontrol", 2},
                                                     {"sacctmgr associations", 1},
                                                     {"sacctmgr qos", 1},
                                                     {"sacctmgr users", 1}}));
  EXPECT_TRUE(other.calls.empty());
}

TEST_F(SlurmViewTest, AClusterWithoutAccountsHasNoLabsAndIsAskedForThemOnce) {
  RecordedSlurm slurm(root_);
  slurm.accounts = false;
  SlurmView view(&slurm);
  ASSERT_TRUE(view.Picture({kLong, kLong}));
  const auto picture = view.Picture({kLong, kLong});
  ASSERT_TRUE(picture);
  EXPECT_TRUE(picture->labs.empty());
  EXPECT_TRUE(picture->notes.empty());
  EXPECT_EQ(slurm.calls["sacctmgr associations"], 1);
  EXPECT_EQ(slurm.calls["sacctmgr qos"], 0);
}

TEST_F(SlurmViewTest, NothingKnownIsAnErrorAndNoEmptyPicture) {
  RecordedSlurm slurm(root_);
  slurm.away = true;
  SlurmView view(&slurm);
  const auto picture = view.Picture({0, 0});
  ASSERT_FALSE(picture);
  EXPECT_EQ(picture.error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(view.Advise({}).empty());
}

TEST_F(SlurmViewTest, AdviceTakesWhatIsKnown) {
  RecordedSlurm slurm(root_);
  SlurmView view(&slurm);
  ASSERT_TRUE(view.Picture({kLong, kLong}));
  const auto before = slurm.calls;
  JobSpec spec;
  spec.user = "alice";
  spec.placement.partitions = {"nowhere"};
  const auto lines = view.Advise(spec);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].rfind("there is no partition 'nowhere' here", 0), 0u);
  EXPECT_EQ(slurm.calls, before);
}

}  // namespace
}  // namespace overcap
