// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/repository.h"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>

#include "base/text.h"
#include "stores/all_stores.h"
#include "stores/mem/mem_store.h"
#include "sys/testing/temp_folder.h"

namespace overcap {
namespace {

constexpr ScryptCost kCheap{16, 1, 1};

class RepositoryTest : public testing::Test {
 protected:
  Repository Make(std::string_view secret = {}) {
    Result<Repository> made = Repository::Create({store_}, secret, {}, kCheap);
    if (!made) ADD_FAILURE() << made.error().message;
    return *made;
  }
  std::string OpenCode(std::string_view secret = {}) {
    const Result<Repository> opened = Repository::Open({store_}, secret);
    return opened ? "ok" : std::string(ErrorCodeName(opened.error().code));
  }
  static SnapshotRecord Record(const std::string& workspace, int64_t time_us,
                               const std::string& message = "") {
    SnapshotRecord record;
    record.tree = Sha256Of("tree");
    record.workspace = workspace;
    record.time_us = time_us;
    record.message = message;
    return record;
  }
  void Flip(const std::string& key, size_t at) {
    std::string bytes = *store_->Get(key);
    bytes[at] = static_cast<char>(bytes[at] ^ 1);
    ASSERT_TRUE(store_->Put(key, bytes));
  }

  std::shared_ptr<Store> store_ = std::make_shared<MemStore>("test");
};

TEST_F(RepositoryTest, WhatWasCreatedOpens) {
  const Repository made = Make();
  const Result<Repository> opened = Repository::Open({store_});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ(opened->config().id, made.config().id);
  EXPECT_EQ(opened->config().id.size(), 32u);
  EXPECT_FALSE(opened->master());
  EXPECT_GT(opened->clock().WallUs(), 0);
}

// A service that ignores which part of an object is asked for.
class WholeOnlyStore : public MemStore {
 public:
  using MemStore::MemStore;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t, int64_t limit,
                         std::string* out) const override {
    return MemStore::GetIntoIf(object, 0, limit, out);
  }
};

TEST_F(RepositoryTest, IsNotMadeWhereItCouldNotBeRead) {
  store_ = std::make_shared<WholeOnlyStore>();
  const auto made = Repository::Create({store_}, {}, {}, kCheap);
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("does not give back the part of an object"), std::string::npos);
  EXPECT_TRUE(store_->ListAll("")->empty());
}

TEST_F(RepositoryTest, KeepsTheSizesOfItsChunks) {
  ChunkSizes sizes;
  sizes.min = 1024, sizes.average = 4096, sizes.max = 16'384, sizes.segment = 65'536;
  ASSERT_TRUE(Repository::Create({store_}, {}, sizes));
  EXPECT_EQ(Repository::Open({store_})->config().chunks, sizes);
  auto other = std::make_shared<MemStore>();
  sizes.min = 10;
  EXPECT_EQ(Repository::Create({other}, {}, sizes).error().code, ErrorCode::kUsage);
  EXPECT_TRUE(other->ListAll("")->empty());
}

TEST_F(RepositoryTest, IsNotMadeTwice) {
  const Repository first = Make();
  const Result<Repository> second = Repository::Create({store_});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_NE(second.error().message.find("'mem:test'"), std::string::npos);
  EXPECT_EQ(Repository::Open({store_})->config().id, first.config().id);
}

TEST_F(RepositoryTest, AnEmptyStoreHasNone) {
  const Result<Repository> opened = Repository::Open({store_});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::kNotFound);
  EXPECT_NE(opened.error().message.find("'mem:test'"), std::string::npos);
}

void ExpectOneWinner(const std::shared_ptr<Store>& store) {
  std::atomic<int> ready{0}, conflicts{0};
  std::vector<std::string> won(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < 4) std::this_thread::yield();
      const Result<Repository> made = Repository::Create({store});
      if (made) won[i] = made->config().id;
      if (!made && made.error().code == ErrorCode::kConflict) ++conflicts;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(conflicts, 3);
  EXPECT_EQ(Join(won, ""), Repository::Open({store})->config().id);
  EXPECT_EQ(*store->Get("config"), *store->Get("config-copy"));
}

TEST_F(RepositoryTest, OfTwoCreatorsAtOnceOneWins) {
  for (int round = 0; round < 10; ++round) ExpectOneWinner(std::make_shared<MemStore>());
  const TempFolder folder;
  for (int round = 0; round < 5; ++round) ExpectOneWinner(*OpenStore(folder / StrCat("s", round), true));
}

TEST_F(RepositoryTest, ALostOrDamagedConfigIsReadFromItsCopy) {
  const std::string id = Make("secret").config().id;
  for (const char* key : {"config", "config-copy"}) {
    const std::string good = *store_->Get(key);
    Flip(key, 70);
    EXPECT_EQ(Repository::Open({store_}, "secret")->config().id, id);
    EXPECT_EQ(*Repository::Open({store_}, "secret")->CheckConfig(false),
              std::vector<std::string>{StrCat("'", key, "' is damaged")});
    ASSERT_TRUE(store_->Remove(key));
    EXPECT_EQ(OpenCode("secret"), "ok");
    EXPECT_EQ(Repository::Create({store_}).error().code, ErrorCode::kConflict);
    EXPECT_EQ(*Repository::Open({store_}, "secret")->CheckConfig(true),
              std::vector<std::string>{StrCat("'", key, "' is missing")});
    EXPECT_EQ(*store_->Get(key), good);
    EXPECT_TRUE(Repository::Open({store_}, "secret")->CheckConfig(true)->empty());
  }
  Flip("config", 70);
  Flip("config-copy", 71);
  EXPECT_EQ(OpenCode("secret"), "corrupt");
}

TEST_F(RepositoryTest, AnEncryptedOneNeedsItsSecret) {
  const Repository made = Make("correct horse");
  EXPECT_EQ(OpenCode("correct horse"), "ok");
  EXPECT_EQ(Repository::Open({store_}, "correct horse")->master()->bytes(), made.master()->bytes());
  EXPECT_EQ(OpenCode("wrong"), "denied");
  EXPECT_EQ(OpenCode(""), "denied");
  EXPECT_EQ(store_->Get("config")->find("correct"), std::string::npos);
}

// Else somebody could put a plain repository in place of an encrypted one and be given what is secret.
TEST_F(RepositoryTest, ASecretForAPlainOneIsRefused) {
  Make();
  EXPECT_EQ(OpenCode("secret"), "usage");
}

TEST_F(RepositoryTest, SnapshotsComeOldestFirst) {
  const Repository repository = Make();
  for (const int64_t time : {30, 10, 20}) ASSERT_TRUE(repository.PutSnapshot(Record("a", time)));
  ASSERT_TRUE(repository.PutSnapshot(Record("b", 15)));
  const auto times = [&](std::string_view workspace) {
    std::vector<int64_t> out;
    const auto snapshots = repository.Snapshots(workspace);
    for (const NamedSnapshot& snapshot : *snapshots) out.push_back(snapshot.record.time_us);
    return out;
  };
  EXPECT_EQ(times("a"), (std::vector<int64_t>{10, 20, 30}));
  EXPECT_EQ(times(""), (std::vector<int64_t>{10, 15, 20, 30}));
  EXPECT_EQ(times("none"), std::vector<int64_t>{});
  EXPECT_EQ(repository.Snapshots("../x").error().code, ErrorCode::kUsage);
}

TEST_F(RepositoryTest, ASnapshotIsNamedByItsBytes) {
  const Repository repository = Make();
  const Result<NamedSnapshot> put = repository.PutSnapshot(Record("a", 1'794'753'900'123'456, "hello"));
  ASSERT_TRUE(put);
  EXPECT_EQ(put->key.Text(), "snapshots/a/20261115T144500.123456Z-" + put->Id());
  EXPECT_EQ(Sha256Of(*store_->Get(put->key.Text())), put->key.id);
  EXPECT_EQ(put->ShortId(), put->Id().substr(0, 10));
  EXPECT_EQ(repository.Find("a", put->Id())->record.message, "hello");
  EXPECT_EQ(repository.PutSnapshot(Record(".a", 1)).error().code, ErrorCode::kUsage);
}

TEST_F(RepositoryTest, FindsByIdAndByAge) {
  const Repository repository = Make();
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(repository.PutSnapshot(Record("a", i))->Id());
  const auto find = [&](const std::string& name) {
    const Result<NamedSnapshot> found = repository.Find("a", name);
    return found ? found->Id() : std::string(ErrorCodeName(found.error().code));
  };
  EXPECT_EQ(find("latest"), ids[2]);
  EXPECT_EQ(find("latest~0"), ids[2]);
  EXPECT_EQ(find("latest~2"), ids[0]);
  EXPECT_EQ(find("latest~3"), "not_found");
  EXPECT_EQ(find("latest~-1"), "not_found");
  EXPECT_EQ(find("latest~99999999999999999999"), "not_found");
  EXPECT_EQ(find("latestx"), "not_found");
  EXPECT_EQ(find(ids[1]), ids[1]);
  EXPECT_EQ(find(ids[1].substr(0, 10)), ids[1]);
  EXPECT_EQ(find(ids[1].substr(0, 3)), "usage");
  EXPECT_EQ(find("ffff" + ids[1]), "not_found");
  EXPECT_EQ(find("XYZW"), "not_found");
  EXPECT_EQ(repository.Find("b", "latest").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(repository.Find("", "latest")->Id(), ids[2]);
}

TEST_F(RepositoryTest, AnIdThatSeveralBeginWithIsRefused) {
  const Repository repository = Make();
  std::vector<std::string> ids;
  for (int i = 0; i < 1200; ++i) ids.push_back(repository.PutSnapshot(Record("a", i))->Id());
  std::sort(ids.begin(), ids.end());
  const auto twins = std::adjacent_find(
      ids.begin(), ids.end(),
      [](const std::string& a, const std::string& b) { return a.substr(0, 4) == b.substr(0, 4); });
  ASSERT_NE(twins, ids.end());
  const Result<NamedSnapshot> found = repository.Find("a", twins->substr(0, 4));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kUsage);
  EXPECT_NE(found.error().message.find(twins->substr(0, 16)), std::string::npos);
}

TEST_F(RepositoryTest, ForgetsOneSnapshotOnly) {
  const Repository repository = Make();
  const NamedSnapshot first = *repository.PutSnapshot(Record("a", 1));
  const NamedSnapshot second = *repository.PutSnapshot(Record("a", 2));
  ASSERT_TRUE(repository.Forget(first));
  ASSERT_TRUE(repository.Forget(first));
  ASSERT_EQ(repository.Snapshots("a")->size(), 1u);
  EXPECT_EQ(repository.Find("a", "latest")->Id(), second.Id());
}

TEST_F(RepositoryTest, ADamagedSnapshotHidesNoOther) {
  for (const char* secret : {"", "secret"}) {
    store_ = std::make_shared<MemStore>("test");
    const Repository repository = Make(secret);
    const NamedSnapshot bad = *repository.PutSnapshot(Record("a", 1));
    const NamedSnapshot good = *repository.PutSnapshot(Record("a", 2));
    Flip(bad.key.Text(), 50);
    std::vector<std::string> damage;
    const auto snapshots = repository.Snapshots("a", &damage);
    ASSERT_EQ(snapshots->size(), 1u);
    EXPECT_EQ((*snapshots)[0].Id(), good.Id());
    ASSERT_EQ(damage.size(), 1u);
    EXPECT_NE(damage[0].find(bad.key.Text()), std::string::npos) << damage[0];
    EXPECT_EQ(repository.Find("a", "latest~1").error().code, ErrorCode::kCorrupt);
  }
}

TEST_F(RepositoryTest, ASnapshotUnderAnotherNameIsDamaged) {
  const Repository repository = Make();
  NamedSnapshot put = *repository.PutSnapshot(Record("a", 1));
  const std::string bytes = *store_->Get(put.key.Text());
  put.key.workspace = "b";
  ASSERT_TRUE(store_->Put(put.key.Text(), bytes));
  ASSERT_TRUE(store_->Put("snapshots/b/odd", bytes));
  std::vector<std::string> damage;
  EXPECT_TRUE(repository.Snapshots("b", &damage)->empty());
  EXPECT_EQ(damage.size(), 2u);
}

TEST_F(RepositoryTest, SealedObjectsTellNothingAndComeBack) {
  const Repository repository = Make("secret");
  const std::string plain(1000, 'p');
  const Result<Digest> id = repository.PutSealed("index", "index/", plain);
  ASSERT_TRUE(id);
  const std::string key = "index/" + id->Hex(), stored = *store_->Get(key);
  EXPECT_EQ(Sha256Of(stored), *id);
  EXPECT_EQ(stored.find("pppp"), std::string::npos);
  EXPECT_EQ(*repository.GetSealed("index", key), plain);
  EXPECT_EQ(repository.GetSealed("snapshots", key).error().code, ErrorCode::kCorrupt);
  EXPECT_NE(*repository.PutSealed("index", "index/", plain), *id);
}

TEST_F(RepositoryTest, PlainObjectsAreStoredAsTheyAre) {
  const Repository repository = Make();
  const Result<Digest> id = repository.PutSealed("index", "index/", "plain");
  EXPECT_EQ(*store_->Get("index/" + id->Hex()), "plain");
  EXPECT_EQ(*repository.GetSealed("index", "index/" + id->Hex()), "plain");
  EXPECT_EQ(repository.GetSealed("index", "index/" + Sha256Of("none").Hex()).error().code,
            ErrorCode::kNotFound);
}

}  // namespace
}  // namespace overcap
