// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/transfer.h"

#include <gtest/gtest.h>
#include <mutex>
#include <set>

#include "base/text.h"
#include "control/transfer/key_stream.h"
#include "control/transfer/md5.h"
#include "stores/file/file_store.h"
#include "stores/mem/mem_store.h"
#include "stores/testing/fault_store.h"
#include "stores/testing/quick_folder.h"
#include "sys/random.h"

namespace overcap {
namespace {

std::string Varied(size_t size, uint64_t seed) {
  std::string bytes(size, 'x');
  SeededRandom random(seed);
  for (size_t i = 0; i < bytes.size(); i += 509) bytes[i] = static_cast<char>(random.Next());
  return bytes;
}

std::vector<std::string> Keys(const Store& store) {
  std::vector<std::string> keys;
  const auto all = store.ListAll("");
  for (const StoredObjectInfo& object : *all) keys.push_back(object.key);
  return keys;
}

class TransferTest : public testing::Test {
 protected:
  static std::shared_ptr<MemStore> Memory() {
    return std::make_shared<MemStore>("", std::make_shared<MemStore::Content>(), KeyRule::kAny);
  }
  void Steps(TransferOptions* options) {
    options->step = [this](const TransferStep& step) {
      const std::lock_guard lock(mutex_);
      steps_.insert(StrCat(step.kind == TransferStep::Kind::kCopy ? "copy " : "remove ", step.key, ": ",
                           CopyVerdictText(step.why)));
    };
  }

  std::shared_ptr<MemStore> from_ = Memory(), to_ = Memory();
  FaultStore faulty_from_{from_}, faulty_to_{to_};
  const QuickFolder folder_;
  std::mutex mutex_;  // guards steps_
  std::set<std::string> steps_;
};

TEST_F(TransferTest, CopiesWhatIsMissingOrOtherAndNothingTwice) {
  ASSERT_TRUE(from_->Put("a b/\xff\n", "1"));
  ASSERT_TRUE(from_->Put("c", "22"));
  ASSERT_TRUE(from_->Put("empty", ""));
  ASSERT_TRUE(from_->Put("large", Varied(20'000'000, 1)));
  ASSERT_TRUE(to_->Put("c", "1"));
  ASSERT_TRUE(to_->Put("z", "stays"));
  const auto first = TransferAll(*from_, *to_, {});
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->copied, 4);
  EXPECT_EQ(first->copied_bytes, 20'000'003);
  EXPECT_EQ(first->extra, 1);
  EXPECT_EQ(first->failed, 0);
  EXPECT_EQ(Keys(*to_), (std::vector<std::string>{"a b/\xff\n", "c", "empty", "large", "z"}));
  EXPECT_TRUE(*to_->Get("large") == Varied(20'000'000, 1));
  const auto second = TransferAll(*from_, faulty_to_, {});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->copied, 0);
  EXPECT_EQ(second->same, 4);
  EXPECT_EQ(faulty_to_.changes(), 0);
}

TEST_F(TransferTest, RemovesWhatIsExtraWhenAskedAndOnlyAfterAllWentWell) {
  ASSERT_TRUE(from_->Put("a", "1"));
  ASSERT_TRUE(to_->Put("b", "2"));
  ASSERT_TRUE(to_->Put("c/d", "3"));
  StoreFault full = StoreFault::Full();
  full.times = 1;
  faulty_to_.Add(full);
  const TransferOptions options{.remove_extra = true};
  const auto failed = TransferAll(*from_, faulty_to_, options);
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->failed, 1);
  EXPECT_EQ(failed->extra, 2);
  EXPECT_EQ(Keys(*to_), (std::vector<std::string>{"b", "c/d"}));
  const auto well = TransferAll(*from_, faulty_to_, options);
  ASSERT_TRUE(well);
  EXPECT_EQ(well->removed, 2);
  EXPECT_EQ(Keys(*to_), std::vector<std::string>{"a"});
}

TEST_F(TransferTest, AnEmptySourceDoesNotEmptyTheDestination) {
  ASSERT_TRUE(to_->Put("b", "2"));
  const auto report = TransferAll(*from_, *to_, {.remove_extra = true});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::kConflict);
  EXPECT_EQ(Keys(*to_), std::vector<std::string>{"b"});
}

TEST_F(TransferTest, ADryRunChangesNothingAndTellsAll) {
  ASSERT_TRUE(from_->Put("a", "1"));
  ASSERT_TRUE(from_->Put("b", "22"));
  ASSERT_TRUE(to_->Put("b", "1"));
  ASSERT_TRUE(to_->Put("c", "3"));
  TransferOptions options{.remove_extra = true, .dry_run = true};
  Steps(&options);
  ASSERT_TRUE(TransferAll(*from_, faulty_to_, options));
  EXPECT_EQ(steps_, (std::set<std::string>{"copy a: new", "copy b: another size", "remove c: new"}));
  EXPECT_EQ(faulty_to_.changes(), 0);
}

TEST_F(TransferTest, ChecksumsFindWhatTimesHide) {
  ASSERT_TRUE(from_->Put("a", "1"));
  ASSERT_TRUE(from_->Put("b", "1"));
  ASSERT_TRUE(to_->Put("a", "2"));
  ASSERT_TRUE(to_->Put("b", "1"));
  EXPECT_EQ(TransferAll(*from_, *to_, {})->same, 2);
  const auto report = TransferAll(*from_, *to_, {.checksum = true});
  EXPECT_EQ(report->copied, 1);
  EXPECT_EQ(report->same, 1);
  EXPECT_EQ(*to_->Get("a"), "1");
}

TEST_F(TransferTest, OneThatFailsDoesNotKeepTheOthers) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(from_->Put(StrCat("k/", 100 + i), "x"));
  StoreFault lost = StoreFault::Lost("k/150");
  faulty_from_.Add(lost);
  const auto report = TransferAll(faulty_from_, *to_, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->copied, 99);
  EXPECT_EQ(report->failed, 1);
  ASSERT_EQ(report->problems.size(), 1u);
  EXPECT_EQ(report->problems[0].key, "k/150");
  EXPECT_FALSE(report->gave_up);
}

// A listing that tells sizes that no object has.
class BoastfulStore : public MemStore {
 public:
  using MemStore::MemStore;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override {
    OC_TRY(page, MemStore::List(prefix, next));
    for (StoredObjectInfo& object : page.objects) {
      if (object.key.starts_with("huge")) object.size = INT64_MAX;
    }
    return page;
  }
};

TEST_F(TransferTest, ASizeThatNoObjectHasFailsThatObjectByItsNameAndNoOther) {
  BoastfulStore from("", std::make_shared<MemStore::Content>(), KeyRule::kAny);
  for (const char* key : {"a", "huge1", "huge2", "z"}) ASSERT_TRUE(from.Put(key, "x"));
  const auto to = FileStore::Open(folder_ / "to", {.create = true, .keys = KeyRule::kAny});
  ASSERT_TRUE(to);
  const auto report = TransferAll(from, **to, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->copied, 2);
  EXPECT_EQ(report->failed, 2);
  ASSERT_EQ(report->problems.size(), 2u);
  EXPECT_EQ(report->problems[0].error.message.substr(0, 53),
            "'huge1' is said to have 9223372036854775807 bytes; at");
  EXPECT_EQ(Keys(**to), (std::vector<std::string>{"a", "z"}));
}

TEST_F(TransferTest, GivesUpWhereNothingWorks) {
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(from_->Put(StrCat("k/", 10'000 + i), "x"));
  faulty_to_.Add(StoreFault::Full());
  const auto report = TransferAll(*from_, faulty_to_, {.workers = 4});
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->gave_up);
  EXPECT_EQ(report->copied, 0);
  EXPECT_LT(report->failed, 20);
}

TEST_F(TransferTest, StopsWhenAsked) {
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(from_->Put(StrCat("k/", 10'000 + i), "x"));
  ASSERT_TRUE(from_->Put("a", Varied(50'000'000, 2)));
  std::atomic<bool> stop{false};
  TransferOptions options{.workers = 4, .stop = &stop};
  options.progress = [&](const TransferProgress& progress) { stop = stop || progress.files_done > 20; };
  const auto report = TransferAll(*from_, *to_, options);
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->stopped);
  EXPECT_EQ(report->failed, 0);
  EXPECT_LT(report->copied, 5001);
  const auto all = to_->ListAll("");
  for (const StoredObjectInfo& object : *all) EXPECT_EQ(object.size, from_->Stat(object.key)->size);
}

TEST_F(TransferTest, FailuresInTheMiddleOfALargeObjectLeaveNothing) {
  ASSERT_TRUE(from_->Put("large", Varied(60'000'000, 3)));
  StoreFault broken;
  broken.ops = {StoreOp::kGet};
  broken.skip = 3;
  broken.times = 2;
  broken.error = Error{ErrorCode::kUnavailable, "connection lost", ""};
  faulty_from_.Add(broken);
  const auto report = TransferAll(faulty_from_, *to_, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->failed, 1);
  EXPECT_TRUE(Keys(*to_).empty());
}

TEST_F(TransferTest, ASourceThatChangesMeanwhileIsNotMixed) {
  ASSERT_TRUE(from_->Put("large", Varied(60'000'000, 3)));
  std::atomic<int> gets{0};
  faulty_from_.OnCall([&](const StoreCall& call) {
    if (call.op == StoreOp::kGet && ++gets == 3) (void)from_->Put("large", Varied(60'000'000, 4));
  });
  const auto report = TransferAll(faulty_from_, *to_, {});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->failed, 1);
  EXPECT_EQ(report->problems[0].error.code, ErrorCode::kConflict);
  EXPECT_TRUE(Keys(*to_).empty());
}

TEST_F(TransferTest, WhatArrivedOfALargeDownloadDoesNotTravelAgain) {
  ASSERT_TRUE(from_->Put("large", Varied(60'000'000, 5)));
  const auto to = FileStore::Open(folder_ / "to",
                                  {.create = true, .keys = KeyRule::kAny, .manner = {nullptr, false, false}});
  StoreFault broken;
  broken.ops = {StoreOp::kGet};
  broken.skip = 5;
  broken.error = Error{ErrorCode::kUnavailable, "connection lost", ""};
  faulty_from_.Add(broken);
  const auto cut = TransferAll(faulty_from_, **to, {.workers = 2});
  EXPECT_EQ(cut->failed, 1);
  EXPECT_TRUE(Keys(**to).empty());
  faulty_from_.Revive();
  const int64_t before = faulty_from_.CallsOf(StoreOp::kGet);
  const auto again = TransferAll(faulty_from_, **to, {.workers = 2});
  EXPECT_EQ(again->copied, 1);
  EXPECT_EQ(faulty_from_.CallsOf(StoreOp::kGet) - before, 8 - 5);
  EXPECT_TRUE(*(*to)->Get("large") == Varied(60'000'000, 5));
}

TEST_F(TransferTest, FoldersKeepTimes) {
  ASSERT_TRUE(from_->Put("a", "1"));
  const auto to = FileStore::Open(folder_ / "to",
                                  {.create = true, .keys = KeyRule::kAny, .manner = {nullptr, false, false}});
  ASSERT_TRUE(TransferAll(*from_, **to, {}));
  EXPECT_EQ((*to)->Stat("a")->modified_us, from_->Stat("a")->modified_us);
  EXPECT_EQ(TransferAll(*from_, **to, {})->same, 1);
  ASSERT_TRUE((*to)->Put("a", "2"));
  ASSERT_TRUE((*to)->SetModified("a", from_->Stat("a")->modified_us + 5'000'000));
  EXPECT_EQ(TransferAll(*from_, **to, {})->copied, 1);
  EXPECT_EQ(*(*to)->Get("a"), "1");
}

// A store whose objects have an MD5, which may be wrong.
class ToldMd5 : public MemStore {
 public:
  ToldMd5() : MemStore("", std::make_shared<Content>(), KeyRule::kAny) {}
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override {
    OC_TRY(page, MemStore::List(prefix, next));
    for (StoredObjectInfo& object : page.objects) object.md5 = told_;
    return page;
  }
  Result<StoredObjectInfo> Stat(const std::string& key) const override {
    OC_TRY(object, MemStore::Stat(key));
    if (sure_) object.md5 = told_;
    return object;
  }
  std::string told_;
  bool sure_ = true;
};

TEST_F(TransferTest, WhatArrivesIsComparedWithTheMd5) {
  ToldMd5 from;
  for (const size_t size : {10, 20'000'000}) {
    ASSERT_TRUE(from.Put("a", Varied(size, 1)));
    from.told_ = Md5Hex("another");
    const auto report = TransferAll(from, *to_, {.all = true});
    ASSERT_EQ(report->failed, 1);
    EXPECT_EQ(report->problems[0].error.code, ErrorCode::kCorrupt);
    EXPECT_TRUE(Keys(*to_).empty());
    from.sure_ = false;
    EXPECT_EQ(TransferAll(from, *to_, {.all = true})->copied, 1);
    from.sure_ = true;
    from.told_ = Md5Hex(Varied(size, 1));
    EXPECT_EQ(TransferAll(from, *to_, {.all = true})->copied, 1);
    ASSERT_TRUE(to_->Remove("a"));
  }
}

TEST_F(TransferTest, OneObjectUnderAnotherName) {
  ASSERT_TRUE(from_->Put("x/a", "1"));
  EXPECT_EQ(TransferOne(*from_, "x/a", *to_, "b", {})->copied, 1);
  EXPECT_EQ(*to_->Get("b"), "1");
  EXPECT_EQ(TransferOne(*from_, "x/a", *to_, "b", {})->same, 1);
  EXPECT_EQ(TransferOne(*from_, "none", *to_, "b", {}).error().code, ErrorCode::kNotFound);
}

TEST_F(TransferTest, RemovesAllUnderAPrefix) {
  for (const char* key : {"a/1", "a/2", "b"}) ASSERT_TRUE(to_->Put(key, "x"));
  EXPECT_EQ(RemoveAll(*to_, "a/", {})->removed, 2);
  EXPECT_EQ(Keys(*to_), std::vector<std::string>{"b"});
}

TEST_F(TransferTest, ComparesContents) {
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(from_->Put(key, "1"));
  for (const char* key : {"b", "c", "d"}) ASSERT_TRUE(to_->Put(key, "1"));
  ASSERT_TRUE(to_->Put("c", "2"));
  const auto report = CompareAll(*from_, *to_, {});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->same, 1);
  EXPECT_EQ(report->missing, 1);
  EXPECT_EQ(report->extra, 1);
  EXPECT_EQ(report->different, 1);
  EXPECT_EQ(report->problems.size(), 3u);
}

TEST_F(TransferTest, MemoryIsBoundedByTheBudget) {
  ASSERT_TRUE(from_->Put("large", Varied(60'000'000, 3)));
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(from_->Put(StrCat("m/", i), Varied(3'000'000, 1)));
  EXPECT_EQ(TransferAll(*from_, *to_, {.workers = 8, .memory = 1'000'000})->copied, 51);
}

TEST(KeyStream, TwoListingsSideBySide) {
  MemStore left, right;
  for (const char* key : {"a", "b", "d"}) ASSERT_TRUE(left.Put(key, "l"));
  for (const char* key : {"b", "c", "d", "e"}) ASSERT_TRUE(right.Put(key, "r"));
  KeyStream a(left), b(right);
  std::string seen;
  const auto visit = [&](KeyPair* pair) {
    seen += StrCat(pair->left ? pair->left->key : "-", pair->right ? pair->right->key : "-", " ");
    return true;
  };
  ASSERT_TRUE(VisitPairs(
      &a, &b, [] { ADD_FAILURE(); }, visit));
  EXPECT_EQ(seen, "a- bb -c dd -e ");
}

TEST(Md5, OfNothingAndOfSomething) {
  EXPECT_EQ(Md5Hex(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(Md5Hex("abc"), "900150983cd24fb0d6963f7d28e17f72");
}

}  // namespace
}  // namespace overcap
