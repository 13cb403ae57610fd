// SPDX-License-Identifier: Apache-2.0
#include "stores/file/partial_upload.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/file/file_store.h"
#include "stores/testing/quick_folder.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int64_t kSize = 3 * kFilePartSize - 100;

class PartialUploadTest : public testing::Test {
 protected:
  PartialUploadTest() : content_(static_cast<size_t>(kSize), 'x') {
    SeededRandom random(1);
    for (size_t i = 0; i < content_.size(); i += 4099) content_[i] = static_cast<char>(random.Next());
  }
  std::string_view PartBytes(int64_t part) {
    return std::string_view(content_).substr(static_cast<size_t>(part * kFilePartSize), kFilePartSize);
  }
  std::unique_ptr<StoreUpload> Begin(const std::string& identity = "one") {
    auto upload = store_->ResumeUpload("a/b c", kSize, PutMode::kReplace, identity, 0);
    EXPECT_TRUE(upload);
    return upload ? std::move(*upload) : nullptr;
  }
  std::vector<std::string> Names() {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "s/a"))
      names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string Journal() { return (folder_ / "s/a/") + Names().back(); }

  const QuickFolder folder_;
  std::unique_ptr<FileStore> store_ = *FileStore::Open(
      folder_ / "s", {.create = true, .keys = KeyRule::kAny, .manner = {nullptr, false, false}});
  std::string content_;
};

TEST_F(PartialUploadTest, GoesOnBehindWhatHasArrived) {
  auto first = Begin();
  ASSERT_TRUE(first->Part(1, PartBytes(1)));
  EXPECT_TRUE(first->Has(1));
  first.reset();
  EXPECT_TRUE(store_->ListAll("")->empty());
  auto second = Begin();
  EXPECT_FALSE(second->Has(0));
  EXPECT_TRUE(second->Has(1));
  EXPECT_FALSE(second->Has(2));
  EXPECT_FALSE(second->Finish());
  ASSERT_TRUE(second->Part(0, PartBytes(0)));
  ASSERT_TRUE(second->Part(2, PartBytes(2)));
  ASSERT_TRUE(second->Finish());
  EXPECT_TRUE(*store_->Get("a/b c") == content_);
  EXPECT_EQ(Names(), std::vector<std::string>{"b c"});
}

TEST_F(PartialUploadTest, AnotherSourceBeginsAnew) {
  ASSERT_TRUE(Begin("one")->Part(1, PartBytes(1)));
  EXPECT_FALSE(Begin("two")->Has(1));
}

TEST_F(PartialUploadTest, OneProcessAtATime) {
  auto first = Begin();
  ASSERT_TRUE(first->Part(1, PartBytes(1)));
  auto second = Begin();
  EXPECT_FALSE(second->Has(1));
  for (int64_t part = 0; part < 3; ++part) ASSERT_TRUE(second->Part(part, PartBytes(part)));
  ASSERT_TRUE(second->Finish());
  EXPECT_TRUE(*store_->Get("a/b c") == content_);
}

TEST_F(PartialUploadTest, DamagedPartsTravelAgain) {
  auto first = Begin();
  for (int64_t part = 0; part < 3; ++part) ASSERT_TRUE(first->Part(part, PartBytes(part)));
  first.reset();
  const std::string partial = (folder_ / "s/a/") + Names().front();
  std::fstream(partial, std::ios::in | std::ios::out | std::ios::binary).seekp(kFilePartSize + 5).put('!');
  auto second = Begin();
  EXPECT_TRUE(second->Has(0));
  EXPECT_FALSE(second->Has(1));
  EXPECT_TRUE(second->Has(2));
  second.reset();
  std::filesystem::resize_file(partial, 2 * kFilePartSize);
  EXPECT_FALSE(Begin()->Has(2));
}

// A journal is read after a crash, or after somebody's editor: nothing in it is believed.
TEST_F(PartialUploadTest, AJournalThatIsNoneIsAsGoodAsNone) {
  for (const char* text : {"", "\n", "overcap part 2 1 1\n", "0 00000000\n", "overcap part 1 "}) {
    ASSERT_TRUE(Begin()->Part(0, PartBytes(0)));
    std::ofstream(Journal(), std::ios::trunc) << text;
    auto upload = Begin();
    EXPECT_FALSE(upload->Has(0)) << text;
    for (int64_t part = 0; part < 3; ++part) ASSERT_TRUE(upload->Part(part, PartBytes(part)));
  }
  for (const char* line :
       {"99 00000000\n", "-1 00000000\n", "x\n", "99999999999999999999 1\n", "1 zz\n", "\n"}) {
    ASSERT_TRUE(Begin()->Part(0, PartBytes(0)));
    std::ofstream(Journal(), std::ios::app) << line;
    auto upload = Begin();
    EXPECT_TRUE(upload->Has(0)) << line;
    ASSERT_TRUE(upload->Part(1, PartBytes(1)));
    upload.reset();
    EXPECT_TRUE(Begin()->Has(1)) << line;
  }
}

TEST_F(PartialUploadTest, CleanUpFindsIt) {
  ASSERT_TRUE(Begin()->Part(0, PartBytes(0)));
  EXPECT_EQ(Names().size(), 2u);
  EXPECT_EQ(*store_->CleanUp(3'600'000'000), 0);
  EXPECT_EQ(*store_->CleanUp(0), 2);
  EXPECT_TRUE(Names().empty());
}

TEST_F(PartialUploadTest, FilesOfPeopleAreMadeAsTheUmaskSays) {
  const mode_t before = umask(022);
  auto upload = Begin();
  for (int64_t part = 0; part < 3; ++part) ASSERT_TRUE(upload->Part(part, PartBytes(part)));
  ASSERT_TRUE(upload->Finish());
  ASSERT_TRUE(store_->Put("c", "x"));
  umask(before);
  using std::filesystem::perms;
  const auto mode = [&](const std::string& path) {
    return std::filesystem::status(folder_ / path).permissions() & perms::all;
  };
  EXPECT_EQ(mode("s/a/b c"), static_cast<perms>(0644));
  EXPECT_EQ(mode("s/c"), static_cast<perms>(0644));
  EXPECT_EQ(mode("s/a"), static_cast<perms>(0755));
}

}  // namespace
}  // namespace overcap
