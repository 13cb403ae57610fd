// SPDX-License-Identifier: Apache-2.0
#include "stores/testing/store_conformance.h"

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>

#include "base/text.h"
#include "sys/random.h"

namespace overcap {

void StoreConformance::SetUp() {
  std::string why;
  store_ = GetParam().make(&why);
  if (!store_) GTEST_SKIP() << "NOT TESTED: " << why;
}

void StoreConformance::Put(const std::string& key, std::string_view bytes) {
  const Result<void> put = store_->Put(key, bytes);
  ASSERT_TRUE(put) << key << ": " << put.error().message;
}

std::string StoreConformance::Get(const std::string& key) {
  const Result<std::string> bytes = store_->Get(key);
  return bytes ? *bytes : StrCat("error: ", ErrorCodeName(bytes.error().code));
}

std::vector<std::string> StoreConformance::Keys(const std::string& prefix) {
  const Result<std::vector<StoredObjectInfo>> all = store_->ListAll(prefix);
  if (!all) return {StrCat("error: ", ErrorCodeName(all.error().code))};
  std::vector<std::string> keys;
  for (const StoredObjectInfo& object : *all) keys.push_back(object.key);
  return keys;
}

namespace {

std::string CodeOf(const Result<void>& result) {
  return result ? "ok" : std::string(ErrorCodeName(result.error().code));
}

TEST_P(StoreConformance, GivesBackWhatWasPut) {
  Put("config", "what");
  Put("packs/ab/abcd", std::string("\0binary\n\xff", 9));
  Put("empty", "");
  EXPECT_EQ(Get("config"), "what");
  EXPECT_EQ(Get("packs/ab/abcd"), std::string("\0binary\n\xff", 9));
  EXPECT_EQ(Get("empty"), "");
}

TEST_P(StoreConformance, JoinsPieces) {
  std::vector<std::string> texts;
  std::string whole;
  for (int i = 0; i < 3000; ++i) whole += texts.emplace_back(i % 7 == 0 ? "" : std::to_string(i));
  const std::vector<std::string_view> pieces(texts.begin(), texts.end());
  ASSERT_TRUE(store_->Put("many", pieces, PutMode::kReplace));
  EXPECT_EQ(Get("many"), whole);
  ASSERT_TRUE(store_->Put("none", std::span<const std::string_view>(), PutMode::kReplace));
  EXPECT_EQ(Get("none"), "");
}

TEST_P(StoreConformance, KeepsLargeObjects) {
  std::string large(20'000'000, 'x');
  SeededRandom random(1);
  for (size_t i = 0; i < large.size(); i += 997) large[i] = static_cast<char>(random.Next());
  const std::string_view whole = large;
  const std::vector<std::string_view> pieces = {whole.substr(0, 64), whole.substr(64, 12'345'678),
                                                whole.substr(12'345'742)};
  ASSERT_TRUE(store_->Put("packs/large", pieces, PutMode::kReplace));
  EXPECT_TRUE(Get("packs/large") == large);
  EXPECT_EQ(*store_->Get("packs/large", 19'999'990, 100), large.substr(19'999'990));
}

TEST_P(StoreConformance, GivesRanges) {
  Put("a", "0123456789");
  EXPECT_EQ(*store_->Get("a", 3, 4), "3456");
  EXPECT_EQ(*store_->Get("a", 8, 4), "89");
  EXPECT_EQ(*store_->Get("a", 10, 4), "");
  EXPECT_EQ(*store_->Get("a", 1'000'000, Store::kAll), "");
  EXPECT_EQ(*store_->Get("a", 2, Store::kAll), "23456789");
  EXPECT_EQ(*store_->Get("a", 2, 0), "");
  EXPECT_EQ(store_->Get("a", -1, 1).error().code, ErrorCode::kUsage);
  EXPECT_EQ(store_->Get("a", 1, -1).error().code, ErrorCode::kUsage);
}

TEST_P(StoreConformance, ReadsIntoTheSameMemory) {
  Put("long", "0123456789");
  Put("short", "abc");
  std::string buffer;
  ASSERT_TRUE(store_->GetInto("long", 0, Store::kAll, &buffer));
  EXPECT_EQ(buffer, "0123456789");
  ASSERT_TRUE(store_->GetInto("short", 1, 5, &buffer));
  EXPECT_EQ(buffer, "bc");
  EXPECT_EQ(CodeOf(store_->GetInto("none", 0, 5, &buffer)), "not_found");
}

TEST_P(StoreConformance, ReplacesAndTellsWhatIsThere) {
  Put("a/b", "one");
  Put("a/b", "two!");
  EXPECT_EQ(Get("a/b"), "two!");
  const Result<StoredObjectInfo> info = store_->Stat("a/b");
  ASSERT_TRUE(info);
  EXPECT_EQ(info->key, "a/b");
  EXPECT_EQ(info->size, 4);
  EXPECT_GT(info->modified_us, 1'600'000'000'000'000);
}

TEST_P(StoreConformance, NamesWhatIsMissing) {
  EXPECT_EQ(Get("none"), "error: not_found");
  EXPECT_EQ(Get("no/such/folder"), "error: not_found");
  const Result<StoredObjectInfo> info = store_->Stat("packs/ab/none");
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code, ErrorCode::kNotFound);
  EXPECT_NE(info.error().message.find("packs/ab/none"), std::string::npos);
  EXPECT_NE(info.error().message.find(store_->Location()), std::string::npos);
}

TEST_P(StoreConformance, AFolderIsNoObject) {
  Put("a/b/c", "x");
  EXPECT_EQ(Get("a/b"), "error: not_found");
  EXPECT_FALSE(store_->Stat("a"));
  EXPECT_TRUE(store_->Remove("a/b"));
  EXPECT_EQ(Get("a/b/c"), "x");
  EXPECT_EQ(Get("a/b/c/d"), "error: not_found");
  EXPECT_TRUE(store_->Remove("a/b/c/d"));
}

TEST_P(StoreConformance, CreatesOnlyOnce) {
  EXPECT_EQ(CodeOf(store_->Put("x/once", "first", PutMode::kCreate)), "ok");
  EXPECT_EQ(CodeOf(store_->Put("x/once", "second", PutMode::kCreate)), "conflict");
  EXPECT_EQ(Get("x/once"), "first");
  ASSERT_TRUE(store_->Remove("x/once"));
  EXPECT_EQ(CodeOf(store_->Put("x/once", "third", PutMode::kCreate)), "ok");
  EXPECT_EQ(Get("x/once"), "third");
}

TEST_P(StoreConformance, RemovesAndDoesNotMindWhatIsGone) {
  Put("a/b", "x");
  EXPECT_TRUE(store_->Remove("a/b"));
  EXPECT_TRUE(store_->Remove("a/b"));
  EXPECT_TRUE(store_->Remove("never/was"));
  EXPECT_EQ(Get("a/b"), "error: not_found");
  EXPECT_TRUE(Keys("").empty());
}

TEST_P(StoreConformance, RefusesOddKeys) {
  for (const std::string& key :
       {std::string(), std::string("/a"), std::string("a/"), std::string("a//b"), std::string("."),
        std::string(".."), std::string("a/../b"), std::string("a/.hidden"), std::string("a b"),
        std::string("a\nb"), std::string("a\0b", 3), std::string("ä"), std::string(901, 'a'),
        std::string(256, 'a')}) {
    EXPECT_EQ(CodeOf(store_->Put(key, "x")), "usage") << Quoted(key);
    EXPECT_EQ(store_->Get(key).error().code, ErrorCode::kUsage) << Quoted(key);
    EXPECT_EQ(store_->Stat(key).error().code, ErrorCode::kUsage) << Quoted(key);
    EXPECT_EQ(CodeOf(store_->Remove(key)), "usage") << Quoted(key);
  }
  for (const char* prefix : {"/", "..", "../", "a/../", ".x", "a//", "a b"})
    EXPECT_EQ(store_->List(prefix, "").error().code, ErrorCode::kUsage) << prefix;
  EXPECT_EQ(store_->List("", "../x").error().code, ErrorCode::kUsage);
}

TEST_P(StoreConformance, TakesLongKeys) {
  std::string key(255, 'a');
  key += "/" + std::string(255, 'b') + "/" + std::string(255, 'c') + "/" + std::string(132, 'd');
  ASSERT_EQ(key.size(), 900u);
  Put(key, "long");
  EXPECT_EQ(Get(key), "long");
  EXPECT_EQ(Keys(std::string(255, 'a') + "/b"), std::vector<std::string>{key});
}

TEST_P(StoreConformance, ListsInTheOrderOfTheBytesOfWholeKeys) {
  // '-' and '.' come before '/', digits and letters after it.
  std::vector<std::string> keys = {"a-b", "a.b", "a/x", "a/y/z", "a/y-z", "a0",
                                   "ab",  "B",   "_",   "a/y.z", "a/y0"};
  for (const std::string& key : keys) Put(key, key);
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(Keys(""), keys);
}

TEST_P(StoreConformance, ListsPrefixesThatEndInTheMiddleOfAName) {
  for (const char* key :
       {"packs/ab/ab12", "packs/ab/ab13", "packs/ac/ac12", "packs/b0/b0", "packsy", "index/1", "p"})
    Put(key, "x");
  EXPECT_EQ(Keys("packs/ab/ab1"), (std::vector<std::string>{"packs/ab/ab12", "packs/ab/ab13"}));
  EXPECT_EQ(Keys("packs/a"), (std::vector<std::string>{"packs/ab/ab12", "packs/ab/ab13", "packs/ac/ac12"}));
  EXPECT_EQ(Keys("packs/ab/ab12"), (std::vector<std::string>{"packs/ab/ab12"}));
  EXPECT_EQ(Keys("packs"), (std::vector<std::string>{"packs/ab/ab12", "packs/ab/ab13", "packs/ac/ac12",
                                                     "packs/b0/b0", "packsy"}));
  EXPECT_EQ(Keys("packs/"),
            (std::vector<std::string>{"packs/ab/ab12", "packs/ab/ab13", "packs/ac/ac12", "packs/b0/b0"}));
  EXPECT_EQ(Keys("index/1/"), std::vector<std::string>{});
  EXPECT_EQ(Keys("none/at/all"), std::vector<std::string>{});
  EXPECT_EQ(Keys("q"), std::vector<std::string>{});
}

TEST_P(StoreConformance, ListsSizes) {
  Put("a/b", "12345");
  const Result<StorePage> page = store_->List("a/", "");
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 1u);
  EXPECT_EQ(page->objects[0].size, 5);
  EXPECT_GT(page->objects[0].modified_us, 1'600'000'000'000'000);
  EXPECT_EQ(page->next, "");
}

// Any key may be given as where to go on, the page before need not have ended there.
TEST_P(StoreConformance, ListsWhatComesAfterAKey) {
  std::vector<std::string> keys = {"a-b", "a/x", "a/y/1", "a/y/2", "a/y0", "a0", "b/1"};
  for (const std::string& key : keys) Put(key, key);
  for (const std::string after :
       {"a", "a-b", "a/x", "a/y/1", "a/y/2", "a/y/3", "a/z", "a0", "b", "b/1", "c"}) {
    const Result<StorePage> page = store_->List("", after);
    ASSERT_TRUE(page);
    std::vector<std::string> listed, wanted;
    for (const StoredObjectInfo& object : page->objects) listed.push_back(object.key);
    std::copy_if(keys.begin(), keys.end(), std::back_inserter(wanted),
                 [&](const std::string& key) { return key > after; });
    EXPECT_EQ(listed, wanted) << "after " << after;
  }
}

TEST_P(StoreConformance, IsSeenByOthersAtOnce) {
  if (!GetParam().again) GTEST_SKIP() << "NOT TESTED: there is one store object only";
  const std::shared_ptr<Store> other = GetParam().again(*store_);
  Put("a/b", "x");
  EXPECT_EQ(*other->Get("a/b"), "x");
  EXPECT_EQ(CodeOf(other->Put("a/b", "y", PutMode::kCreate)), "conflict");
  ASSERT_TRUE(other->Remove("a/b"));
  EXPECT_EQ(Get("a/b"), "error: not_found");
}

TEST_P(StoreConformance, ExactlyOneOfSeveralCreatorsWins) {
  for (int round = 0; round < 20; ++round) {
    const std::string key = StrCat("race/r", round);
    std::atomic<int> won{0}, lost{0}, go{0};
    std::atomic<int> winner{-1};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        ++go;
        while (go < 4) std::this_thread::yield();
        const std::string result = CodeOf(store_->Put(key, std::to_string(i), PutMode::kCreate));
        if (result == "ok") ++won, winner = i;
        if (result == "conflict") ++lost;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
    EXPECT_EQ(lost, 3);
    EXPECT_EQ(Get(key), std::to_string(winner));
  }
}

// Readers see one of the contents, whole, while writers replace it.
TEST_P(StoreConformance, ReadersSeeWholeObjectsOnly) {
  const auto content = [](int i) { return std::string(100'000 + i * 1000, static_cast<char>('a' + i)); };
  Put("busy/object", content(0));
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0}, failed{0};
  std::vector<std::thread> readers;
  for (int r = 0; r < 2; ++r) {
    readers.emplace_back([&] {
      while (!stop) {
        const Result<std::string> bytes = store_->Get("busy/object");
        if (!bytes) {
          ++failed;
          continue;
        }
        const int i = bytes->empty() ? 0 : (*bytes)[0] - 'a';
        if (*bytes != content(i)) ++torn;
      }
    });
  }
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < 20; ++i) {
        if (!store_->Put("busy/object", content((w * 20 + i) % 26))) ++failed;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(failed, 0);
}

// Puts and removes beside a list: what stays all the time is listed, once.
TEST_P(StoreConformance, ListsWhatStaysWhileOthersChange) {
  std::vector<std::string> staying;
  for (int i = 0; i < 50; ++i) Put(staying.emplace_back(StrCat("m/", i % 5, "/s", 100 + i)), "x");
  std::sort(staying.begin(), staying.end());
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int i = 0; !stop; ++i) {
      (void)store_->Put(StrCat("m/", i % 7, "/t", i % 20), "y");
      (void)store_->Remove(StrCat("m/", (i + 3) % 7, "/t", (i + 10) % 20));
    }
  });
  for (int round = 0; round < 30; ++round) {
    std::vector<std::string> keys = Keys("m/");
    EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
    EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
    std::erase_if(keys, [](const std::string& key) { return key[4] == 't'; });
    EXPECT_EQ(keys, staying);
  }
  stop = true;
  changer.join();
}

std::string Varied(size_t size) {
  std::string bytes(size, 'x');
  SeededRandom random(size);
  for (size_t i = 0; i < bytes.size(); i += 1013) bytes[i] = static_cast<char>(random.Next());
  return bytes;
}

// What the upload takes of `bytes` as part `index`.
std::string_view PartOf(const StoreUpload& upload, std::string_view bytes, int64_t index) {
  return bytes.substr(static_cast<size_t>(index * upload.PartSize()), static_cast<size_t>(upload.PartSize()));
}

TEST_P(StoreConformance, TakesLargeObjectsInPartsFromSeveralThreads) {
  const std::string large = Varied(21'000'001);
  Result<std::unique_ptr<StoreUpload>> upload =
      store_->StartUpload("large/object", static_cast<int64_t>(large.size()), PutMode::kReplace);
  ASSERT_TRUE(upload) << upload.error().message;
  const int64_t parts = PartCount(static_cast<int64_t>(large.size()), (*upload)->PartSize());
  std::atomic<int64_t> next{parts};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int64_t part = --next; part >= 0; part = --next) {
        if (!(*upload)->Part(part, PartOf(**upload, large, part))) ++failed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Get("large/object"), "error: not_found");
  const Result<void> finished = (*upload)->Finish();
  ASSERT_TRUE(finished) << finished.error().message;
  upload->reset();
  EXPECT_TRUE(Get("large/object") == large);
  EXPECT_EQ(Keys(""), std::vector<std::string>{"large/object"});
}

TEST_P(StoreConformance, AnUploadReplacesTheOldContentAtOnceAtItsEnd) {
  Put("a", "old");
  Result<std::unique_ptr<StoreUpload>> upload = store_->StartUpload("a", 3, PutMode::kReplace);
  ASSERT_TRUE(upload);
  ASSERT_TRUE((*upload)->Part(0, "bad"));
  ASSERT_TRUE((*upload)->Part(0, "new"));
  EXPECT_EQ(Get("a"), "old");
  ASSERT_TRUE((*upload)->Finish());
  EXPECT_EQ(Get("a"), "new");
}

TEST_P(StoreConformance, AnUploadThatIsNotFinishedLeavesNothing) {
  Put("a", "old");
  for (const char* key : {"a", "b/c"}) {
    const Result<std::unique_ptr<StoreUpload>> upload = store_->StartUpload(key, 3, PutMode::kReplace);
    ASSERT_TRUE(upload);
    ASSERT_TRUE((*upload)->Part(0, "new"));
  }
  EXPECT_EQ(Get("a"), "old");
  EXPECT_EQ(Keys(""), std::vector<std::string>{"a"});
  EXPECT_EQ(*store_->CleanUp(0), 0);
}

TEST_P(StoreConformance, UploadsKnowTheirParts) {
  const Result<std::unique_ptr<StoreUpload>> upload = store_->StartUpload("a", 3, PutMode::kReplace);
  ASSERT_TRUE(upload);
  ASSERT_GE((*upload)->PartSize(), 3);
  EXPECT_EQ(CodeOf((*upload)->Part(0, "four")), "usage");
  EXPECT_EQ(CodeOf((*upload)->Part(1, "one")), "usage");
  EXPECT_EQ(CodeOf((*upload)->Part(-1, "one")), "usage");
  EXPECT_EQ(CodeOf((*upload)->Finish()), "usage");
  ASSERT_TRUE((*upload)->Part(0, "abc"));
  EXPECT_EQ(CodeOf((*upload)->Finish()), "ok");
  EXPECT_EQ(Get("a"), "abc");
}

TEST_P(StoreConformance, UploadsOfNothingMakeAnEmptyObject) {
  const Result<std::unique_ptr<StoreUpload>> upload = store_->StartUpload("a/empty", 0, PutMode::kReplace);
  ASSERT_TRUE(upload);
  EXPECT_EQ(CodeOf((*upload)->Finish()), "ok");
  EXPECT_EQ(Get("a/empty"), "");
}

TEST_P(StoreConformance, UploadsCreateOnlyOnce) {
  Result<std::unique_ptr<StoreUpload>> first = store_->StartUpload("once", 1, PutMode::kCreate);
  Result<std::unique_ptr<StoreUpload>> second = store_->StartUpload("once", 1, PutMode::kCreate);
  ASSERT_TRUE(first && second);
  ASSERT_TRUE((*first)->Part(0, "1"));
  ASSERT_TRUE((*second)->Part(0, "2"));
  EXPECT_EQ(CodeOf((*second)->Finish()), "ok");
  EXPECT_EQ(CodeOf((*first)->Finish()), "conflict");
  EXPECT_EQ(Get("once"), "2");
}

TEST_P(StoreConformance, UploadsOfOddKeysAreRefused) {
  for (const char* key : {"", "../x", "a//b", "a b"}) {
    const Result<std::unique_ptr<StoreUpload>> upload = store_->StartUpload(key, 0, PutMode::kReplace);
    const std::string code =
        upload ? CodeOf((*upload)->Finish()) : std::string(ErrorCodeName(upload.error().code));
    EXPECT_EQ(code, "usage") << key;
  }
  EXPECT_EQ(store_->StartUpload("a", -1, PutMode::kReplace).error().code, ErrorCode::kUsage);
}

// A size that a server has announced is no size that memory is taken for.
TEST_P(StoreConformance, UploadsOfImpossibleSizesAreRefusedByName) {
  for (const int64_t size : {INT64_MAX, INT64_MAX / 2, int64_t{1} << 50}) {
    for (const bool resumed : {false, true}) {
      const auto upload = resumed ? store_->ResumeUpload("large", size, PutMode::kReplace, "one", 0)
                                  : store_->StartUpload("large", size, PutMode::kReplace);
      ASSERT_FALSE(upload);
      EXPECT_EQ(upload.error().code, ErrorCode::kUsage);
      EXPECT_TRUE(
          upload.error().message.starts_with(StrCat("'large' is said to have ", size, " bytes; at most ")))
          << upload.error().message;
    }
  }
}

// Where a store tells versions, a range of an object that has been replaced is not mixed with the old one.
TEST_P(StoreConformance, RangesAreOfTheObjectThatWasLookedAt) {
  Put("a", "0123456789");
  const Result<StoredObjectInfo> before = store_->Stat("a");
  ASSERT_TRUE(before);
  std::string bytes;
  ASSERT_TRUE(store_->GetIntoIf(*before, 2, 3, &bytes));
  EXPECT_EQ(bytes, "234");
  const Result<StorePage> page = store_->List("", "");
  ASSERT_TRUE(page && page->objects.size() == 1);
  EXPECT_EQ(page->objects[0].version, before->version);
  if (before->version.empty()) return;
  Put("a", "9876543210!");
  EXPECT_NE(store_->Stat("a")->version, before->version);
  const Result<void> got = store_->GetIntoIf(*before, 2, 3, &bytes);
  EXPECT_EQ(CodeOf(got), "conflict");
  ASSERT_TRUE(store_->Remove("a"));
  EXPECT_EQ(CodeOf(store_->GetIntoIf(*before, 2, 3, &bytes)), "not_found");
}

TEST_P(StoreConformance, TimesAreKeptWhereItSaysSo) {
  Put("a", "x");
  constexpr int64_t kThen = 1'234'567'890'000'000;
  const Result<void> set = store_->SetModified("a", kThen);
  EXPECT_EQ(static_cast<bool>(set), store_->KeepsTimes());
  if (store_->KeepsTimes()) {
    EXPECT_EQ(store_->Stat("a")->modified_us, kThen);
  }
  EXPECT_TRUE(store_->Flush());
}

TEST_P(StoreConformance, CleansUpNothingThatIsAnObject) {
  Put("a/b", "x");
  Put("c", "y");
  ASSERT_TRUE(store_->CleanUp(0));
  EXPECT_EQ(Keys(""), (std::vector<std::string>{"a/b", "c"}));
}

}  // namespace
}  // namespace overcap
