// SPDX-License-Identifier: Apache-2.0
#include "stores/sftp/sftp_store.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/text.h"
#include "stores/testing/lock_conformance.h"
#include "stores/testing/quick_folder.h"
#include "stores/testing/store_conformance.h"
#include "sys/variables.h"

namespace overcap {
namespace {

constexpr const char* kServer = "/usr/lib/openssh/sftp-server";

// Why it cannot be tested here; "": it can.
std::string WhyNot() {
#if defined(__SANITIZE_THREAD__)
  return "the race detector takes the steps of a program that is started for those of its parent";
#endif
  return access(kServer, X_OK) == 0 ? "" : StrCat(kServer, " is not there");
}

// Stands for ssh: what it gets to hear goes to OpenSSH's server of this machine. With $OVERCAP_TEST_SSH that
// is run in its place, to the host $OVERCAP_TEST_SSH_HOST.
class SftpRig {
 public:
  SftpRig() {
    program_ = folder_ / "ssh";
    Script(StrCat("exec ", kServer));
  }
  void Script(const std::string& line) {
    std::ofstream(program_, std::ios::trunc) << "#!/bin/sh\n" << line << "\n";
    std::filesystem::permissions(program_, std::filesystem::perms::owner_all);
  }
  SftpTarget Target() const {
    SftpTarget target;
    const char* ssh = getenv("OVERCAP_TEST_SSH");
    const char* host = getenv("OVERCAP_TEST_SSH_HOST");
    target.program = ssh != nullptr ? ssh : program_;
    target.host = host != nullptr ? host : "test-host";
    target.env = Variables::OfThisProcess().entries();
    target.location = StrCat("ssh://", target.host, folder_ / "store");
    return target;
  }
  Result<std::unique_ptr<SftpStore>> Open(SftpStoreOptions options = {.create = true}) const {
    return SftpStore::Open(Target(), folder_ / "store", options);
  }
  const QuickFolder& folder() const { return folder_; }

 private:
  const QuickFolder folder_;
  std::string program_;
};

// A store with the folder that it is in.
class RiggedStore : public SftpRig {
 public:
  std::unique_ptr<SftpStore> store;
};

// The one of the test that runs.
RiggedStore* current = nullptr;

std::shared_ptr<Store> SftpAgain(Store&) {
  auto store = current->Open();
  return store ? std::shared_ptr<Store>(std::move(*store)) : nullptr;
}

std::shared_ptr<Store> MakeSftp(std::string* why) {
  *why = WhyNot();
  if (!why->empty()) return nullptr;
  auto rigged = std::make_shared<RiggedStore>();
  auto store = rigged->Open();
  if (!store) {
    *why = store.error().message;
    return nullptr;
  }
  rigged->store = std::move(*store);
  current = rigged.get();
  return std::shared_ptr<Store>(rigged, rigged->store.get());
}

INSTANTIATE_TEST_SUITE_P(Sftp, StoreConformance, testing::Values(StoreMaker{"sftp", MakeSftp, SftpAgain}),
                         ConformingStoreName);
INSTANTIATE_TEST_SUITE_P(Sftp, LockConformance,
                         testing::Values(StoreMaker{"sftp", MakeSftp, SftpAgain, 2'000'000}),
                         ConformingStoreName);

class SftpStoreTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNot(); !why.empty()) GTEST_SKIP() << "NOT TESTED: " << why;
  }
  SftpRig rig_;
};

TEST_F(SftpStoreTest, AFolderThatIsMissingIsNamed) {
  const auto store = rig_.Open({});
  ASSERT_FALSE(store);
  EXPECT_EQ(store.error().code, ErrorCode::kNotFound);
  std::ofstream(rig_.folder() / "store") << "a file";
  EXPECT_EQ(rig_.Open().error().code, ErrorCode::kUsage);
}

TEST_F(SftpStoreTest, FilesArePrivateOrPeoples) {
  using std::filesystem::perms;
  const auto mode = [&](const std::string& path) {
    return std::filesystem::status(rig_.folder() / path).permissions() & perms::all;
  };
  ASSERT_TRUE((*rig_.Open())->Put("a/b", "x"));
  EXPECT_EQ(mode("store/a/b"), static_cast<perms>(0600));
  EXPECT_EQ(mode("store/a"), static_cast<perms>(0700));
  const auto peoples =
      rig_.Open({.create = false, .keys = KeyRule::kAny, .private_files = false, .durable = false});
  ASSERT_TRUE((*peoples)->Put(".c d/\xff\n", "x"));
  EXPECT_EQ(*(*peoples)->Get(".c d/\xff\n"), "x");
  EXPECT_NE(mode("store/.c d") & static_cast<perms>(0050), perms::none);
  EXPECT_EQ((*peoples)->ListAll("")->size(), 2u);
}

TEST_F(SftpStoreTest, WhatIsNeitherFileNorFolderIsToldOf) {
  const auto store = rig_.Open({.create = true, .keys = KeyRule::kAny});
  ASSERT_TRUE((*store)->Put("d/f", "x"));
  std::filesystem::create_symlink("f", rig_.folder() / "store/d/good");
  std::filesystem::create_symlink("none", rig_.folder() / "store/d/dangling");
  std::filesystem::create_symlink("..", rig_.folder() / "store/d/circle");
  const auto page = (*store)->List("", "");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 2u);
  EXPECT_EQ(page->objects[1].key, "d/good");
  EXPECT_EQ(page->objects[1].size, 1);
  EXPECT_EQ(page->left_out, 2);
}

// What an upload that is cut off leaves, and what the next one believes of it.
TEST_F(SftpStoreTest, AnUploadThatWasCutOffGoesOn) {
  constexpr int64_t kPart = 8 << 20, kSize = 6 * kPart - 3;
  const auto part = [&](int64_t i) {
    return std::string(static_cast<size_t>(std::min(kPart, kSize - i * kPart)), static_cast<char>('a' + i));
  };
  const auto store = *rig_.Open({.create = true, .keys = KeyRule::kAny});
  const auto begin = [&](const std::string& identity) {
    return *store->ResumeUpload("d/large", kSize, PutMode::kReplace, identity, 0);
  };
  const auto there = [&](const StoreUpload& upload) {
    std::string parts;
    for (int64_t i = 0; i < 6; ++i) parts += upload.Has(i) ? '1' : '0';
    return parts;
  };
  auto first = begin("one");
  for (const int64_t i : {1, 3, 0, 4, 2}) ASSERT_TRUE(first->Part(i, part(i)));
  first.reset();
  EXPECT_TRUE(store->ListAll("")->empty());
  EXPECT_EQ(there(*begin("other")), "000000");
  auto second = begin("one");
  EXPECT_EQ(there(*second), "110110");  // 32 MiB were on the disk; the last was not said to be
  EXPECT_FALSE(second->Finish());
  ASSERT_TRUE(second->Part(2, part(2)));
  ASSERT_TRUE(second->Part(5, part(5)));
  std::string back;
  ASSERT_TRUE(second->ReadBack(2 * kPart, 5, &back));
  EXPECT_EQ(back, "ccccc");
  ASSERT_TRUE(second->Finish());
  EXPECT_EQ(store->Stat("d/large")->size, kSize);
  EXPECT_EQ(*store->Get("d/large", 5 * kPart - 1, 2), "ef");
  begin("other")->Discard();
  for (const auto& entry : std::filesystem::directory_iterator(rig_.folder() / "store/d"))
    EXPECT_EQ(entry.path().filename(), "large");
}

// A server that does not let the journal be read.
TEST_F(SftpStoreTest, AnUploadThatCannotBeGoneOnWithBeginsFromTheStart) {
  constexpr int64_t kPart = 8 << 20;
  rig_.Script(StrCat("exec ", kServer, " -P read"));
  const auto store = *rig_.Open();
  for (int i = 0; i < 2; ++i) {
    auto upload = store->ResumeUpload("large", 5 * kPart, PutMode::kReplace, "one", 0);
    ASSERT_TRUE(upload) << upload.error().message;
    EXPECT_FALSE((*upload)->Has(0));
    for (int64_t part = 0; part < 4 + i; ++part) ASSERT_TRUE((*upload)->Part(part, std::string(kPart, 'x')));
    EXPECT_EQ((*upload)->Finish().has_value(), i == 1);
  }
  EXPECT_EQ(store->Stat("large")->size, 5 * kPart);
}

TEST_F(SftpStoreTest, WhatIsNotAsTheJournalSaysIsSentAgain) {
  constexpr int64_t kPart = 8 << 20, kSize = 5 * kPart;
  const auto store = *rig_.Open();
  const auto begin = [&] { return *store->ResumeUpload("large", kSize, PutMode::kReplace, "one", 0); };
  const std::string bytes(kPart, 'x');
  {
    const auto upload = begin();
    for (int64_t i = 0; i < 4; ++i) ASSERT_TRUE(upload->Part(i, bytes));
  }
  std::string partial;
  for (const auto& entry : std::filesystem::directory_iterator(rig_.folder() / "store"))
    if (entry.path().extension() != ".done") partial = entry.path();
  EXPECT_TRUE(begin()->Has(3));
  std::fstream(partial, std::ios::in | std::ios::out | std::ios::binary).seekp(3 * kPart + 5).put('!');
  EXPECT_FALSE(begin()->Has(3));
}

TEST_F(SftpStoreTest, ALinkThatWasLostIsMadeAnew) {
  const std::string once = rig_.folder() / "once";
  rig_.Script(
      StrCat("if mkdir ", once, " 2>/dev/null; then timeout 0.5 ", kServer, "; else exec ", kServer, "; fi"));
  const auto store = rig_.Open();
  ASSERT_TRUE(store) << store.error().message;
  bool lost = false;
  for (int i = 0; i < 100'000 && !lost; ++i) {
    const Result<void> put = (*store)->Put("a", "x");
    lost = !put;
    EXPECT_TRUE(!lost || put.error().code == ErrorCode::kUnavailable);
  }
  EXPECT_TRUE(lost);
  EXPECT_TRUE((*store)->Put("a", "y"));
  EXPECT_EQ(*(*store)->Get("a"), "y");
}

TEST_F(SftpStoreTest, SaysWhatSshSays) {
  rig_.Script("echo 'me@host: Permission denied (publickey).' >&2; exit 255");
  const auto denied = rig_.Open();
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, ErrorCode::kDenied);
  EXPECT_NE(denied.error().message.find("Permission denied (publickey)"), std::string::npos)
      << denied.error().message;
  EXPECT_NE(denied.error().hint.find("ssh-copy-id"), std::string::npos);
  rig_.Script("echo 'ssh: connect to host x port 22: Connection refused' >&2; exit 255");
  EXPECT_EQ(rig_.Open().error().code, ErrorCode::kUnavailable);
  rig_.Script("echo 'Welcome to the cluster! Please read the news before you do anything else.'; sleep 1");
  const auto chatty = rig_.Open();
  EXPECT_EQ(chatty.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(chatty.error().message.find("no SFTP"), std::string::npos) << chatty.error().message;
  SftpTarget target = rig_.Target();
  target.program = rig_.folder() / "none";
  EXPECT_EQ(SftpStore::Open(target, "/x", {}).error().code, ErrorCode::kNotFound);
}

TEST(SshWords, AreWordsAndNothingElse) {
  SftpTarget target;
  target.user = "me";
  target.host = "[::1]";
  target.port = 2222;
  const std::vector<std::string> words = SshWords(target);
  EXPECT_EQ(words.front(), "ssh");
  const std::vector<std::string> end(words.end() - 8, words.end());
  EXPECT_EQ(end, (std::vector<std::string>{"-l", "me", "-p", "2222", "-s", "--", "::1", "sftp"}));
}

}  // namespace
}  // namespace overcap
