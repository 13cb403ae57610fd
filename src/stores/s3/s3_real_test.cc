// SPDX-License-Identifier: Apache-2.0
// Against real services: tests/stores/test_s3.py starts them and this. Without one there is nothing to run
// here.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>
#include <thread>

#include "base/text.h"
#include "net/http/http_client.h"
#include "stores/object_requests.h"
#include "stores/s3/s3_store.h"
#include "stores/s3/s3_upload.h"
#include "stores/s3/testing/s3_server.h"
#include "stores/testing/fault_run.h"
#include "stores/testing/lock_conformance.h"
#include "stores/testing/store_conformance.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int64_t kPart = 5 * 1024 * 1024;

std::shared_ptr<S3Store> OpenAt(const S3TestServer& server, const std::string& prefix,
                                KeyRule keys = KeyRule::kPlain, int page_size = 1000) {
  S3StoreOptions options;
  options.keys = keys;
  options.part_size = kPart;
  options.tuning.page_size = page_size;
  auto store = S3Store::Open(server.access, server.bucket, prefix, options);
  return store ? std::move(*store) : nullptr;
}

std::vector<StoreMaker> Makers() {
  std::vector<StoreMaker> makers;
  for (const S3TestServer& server : S3TestServer::FromEnvironment()) {
    const auto make = [server](std::string*) { return OpenAt(server, StrCat("t/", NewPutMark())); };
    const auto again = [server](Store& same) {
      return OpenAt(server, same.Location().substr(StrCat("s3://", server.bucket, "/").size()));
    };
    makers.push_back({"s3", make, again, 4'000'000});
  }
  return makers;
}
INSTANTIATE_TEST_SUITE_P(S3, StoreConformance, testing::ValuesIn(Makers()), ConformingStoreName);
INSTANTIATE_TEST_SUITE_P(S3, LockConformance, testing::ValuesIn(Makers()), ConformingStoreName);

class RealS3 : public testing::TestWithParam<S3TestServer> {
 protected:
  void SetUp() override { store_ = OpenAt(GetParam(), prefix_); }

  Error ErrorWith(const std::function<void(S3TestServer*)>& change) {
    S3TestServer server = GetParam();
    change(&server);
    S3StoreOptions options;
    options.tuning.retry.deadline_us = 1'000'000;
    const auto store = S3Store::Open(server.access, server.bucket, prefix_, options);
    if (!store) return store.error();
    const auto got = (*store)->Get("none");
    return got ? Error{} : got.error();
  }
  std::string Random(int64_t size) {
    std::string bytes(static_cast<size_t>(size), '\0');
    SeededRandom random(static_cast<uint64_t>(size));
    for (size_t i = 0; i + 8 <= bytes.size(); i += 8) {
      const uint64_t bits = random.Next();
      memcpy(&bytes[i], &bits, 8);
    }
    return bytes;
  }
  int64_t PendingUploads() {
    const Result<int64_t> ended = store_->CleanUp(0);
    return ended ? *ended : -1;
  }

  const std::string prefix_ = StrCat("r/", NewPutMark());
  std::shared_ptr<S3Store> store_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealS3);
INSTANTIATE_TEST_SUITE_P(S3, RealS3, testing::ValuesIn(S3TestServer::FromEnvironment()));

TEST_P(RealS3, TakesLargeObjectsInPartsFromManyThreads) {
  const std::string large = Random(3 * kPart + 12'345);
  auto upload = store_->StartUpload("large", static_cast<int64_t>(large.size()), PutMode::kReplace);
  ASSERT_TRUE(upload) << upload.error().message;
  EXPECT_EQ((*upload)->PartSize(), kPart);
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto sent =
          (*upload)->Part(i, std::string_view(large).substr(static_cast<size_t>(i * kPart), kPart));
      EXPECT_TRUE(sent) << sent.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto finished = (*upload)->Finish();
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_TRUE(*store_->Get("large") == large);
  EXPECT_EQ(*store_->Get("large", kPart - 5, 10), large.substr(kPart - 5, 10));
  EXPECT_EQ(PendingUploads(), 0);
}

TEST_P(RealS3, LeavesNoPartsOfAnUploadThatWasGivenUp) {
  {
    auto upload = store_->StartUpload("given-up", 2 * kPart, PutMode::kReplace);
    ASSERT_TRUE(upload);
    ASSERT_TRUE((*upload)->Part(1, Random(kPart)));
    EXPECT_EQ((*upload)->Finish().error().code, ErrorCode::kUsage);
  }
  EXPECT_EQ(PendingUploads(), 0);
  EXPECT_FALSE(store_->Stat("given-up"));
}

TEST_P(RealS3, FindsAndEndsUploadsThatAKilledProcessLeft) {
  auto upload = store_->StartUpload("killed", 2 * kPart, PutMode::kReplace);
  ASSERT_TRUE(upload);
  ASSERT_TRUE((*upload)->Part(0, Random(kPart)));
  EXPECT_EQ(*store_->CleanUp(3'600'000'000), 0);
  EXPECT_EQ(*store_->CleanUp(0), 1);
  EXPECT_FALSE((*upload)->Part(1, Random(kPart)));
}

TEST_P(RealS3, GoesOnWithAnUploadThatWasCutOff) {
  const std::string large = Random(3 * kPart);
  const auto part = [&](int64_t i) {
    return std::string_view(large).substr(static_cast<size_t>(i * kPart), kPart);
  };
  {
    auto first = store_->ResumeUpload("resumed", 3 * kPart, PutMode::kReplace, "source v1", 0);
    ASSERT_TRUE(first) << first.error().message;
    ASSERT_TRUE((*first)->Part(0, part(0)));
    ASSERT_TRUE((*first)->Part(2, part(2)));
  }
  {
    auto other = store_->ResumeUpload("resumed", 3 * kPart, PutMode::kReplace, "source v2", 0);
    ASSERT_TRUE(other);
    EXPECT_FALSE((*other)->Has(0));
  }
  auto second = store_->ResumeUpload("resumed", 3 * kPart, PutMode::kReplace, "source v1", 0);
  ASSERT_TRUE(second);
  EXPECT_TRUE((*second)->Has(0));
  EXPECT_FALSE((*second)->Has(1));
  EXPECT_TRUE((*second)->Has(2));
  ASSERT_TRUE((*second)->Part(1, part(1)));
  const auto finished = (*second)->Finish();
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_TRUE(*store_->Get("resumed") == large);
  EXPECT_EQ(store_->ListAll("")->size(), 1u);
  EXPECT_EQ(PendingUploads(), 2);  // that of v2, and its note
}

TEST_P(RealS3, CreatesLargeObjectsOnlyOnce) {
  const auto upload = [&] {
    auto begun = store_->StartUpload("once", kPart + 1, PutMode::kCreate);
    EXPECT_TRUE(begun);
    EXPECT_TRUE((*begun)->Part(0, Random(kPart)));
    EXPECT_TRUE((*begun)->Part(1, "x"));
    return (*begun)->Finish();
  };
  const auto first = upload(), second = upload();
  EXPECT_TRUE(first) << first.error().message;
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_EQ(PendingUploads(), 0);
}

TEST_P(RealS3, ListsPageByPageWithNamesOfAllKinds) {
  const auto any = OpenAt(GetParam(), prefix_, KeyRule::kAny);
  std::vector<std::string> keys = {"a b", "a+b",  "a&b=c", "p%20q", "\xc3\xa9t\xc3\xa9/x",
                                   "q?#", "t\tt", "z'\"<>"};
  for (const std::string& key : keys) {
    const auto put = any->Put(key, key);
    ASSERT_TRUE(put) << key << ": " << put.error().message;
    const auto got = any->Get(key);
    ASSERT_TRUE(got) << key << ": " << got.error().message;
    EXPECT_EQ(*got, key);
    EXPECT_EQ(any->Stat(key)->size, static_cast<int64_t>(key.size()));
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::string> listed;
  const auto all = any->ListAll("");
  ASSERT_TRUE(all) << all.error().message;
  for (const StoredObjectInfo& object : *all) listed.push_back(object.key);
  EXPECT_EQ(listed, keys);
  const auto plain = store_->List("", "");
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->objects.empty());
  EXPECT_EQ(plain->left_out, static_cast<int64_t>(keys.size()));
  for (const std::string& key : keys) EXPECT_TRUE(any->Remove(key));
}

TEST_P(RealS3, ListsMoreThanOnePage) {
  const auto store = OpenAt(GetParam(), prefix_, KeyRule::kPlain, 10);
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(store->Put(StrCat("many/", 100 + i), "x"));
  const auto first = store->List("many/", "");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->objects.size(), 10u);
  EXPECT_EQ(first->next, "many/109");
  EXPECT_EQ(store->ListAll("many/")->size(), 25u);
}

// More of them than a page of the list of uploads holds, and more parts than a page of parts.
TEST_P(RealS3, SeesPagesOfUploads) {
  const auto store = OpenAt(GetParam(), prefix_, KeyRule::kPlain, 2);
  std::vector<std::unique_ptr<StoreUpload>> uploads;
  for (int i = 0; i < 5; ++i) {
    auto upload = store->StartUpload(StrCat("u", i), kPart + 1, PutMode::kReplace);
    ASSERT_TRUE(upload);
    uploads.push_back(std::move(*upload));
  }
  EXPECT_EQ(*store->CleanUp(0), 5);
  const auto part = Random(kPart);
  {
    auto first = store->ResumeUpload("parts", 4 * kPart, PutMode::kReplace, "x", 0);
    ASSERT_TRUE(first);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE((*first)->Part(i, part));
  }
  auto second = store->ResumeUpload("parts", 4 * kPart, PutMode::kReplace, "x", 0);
  ASSERT_TRUE(second);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE((*second)->Has(i));
  ASSERT_TRUE((*second)->Finish());
  EXPECT_EQ(store->Stat("parts")->size, 4 * kPart);
}

TEST_P(RealS3, TellsMd5AndVersion) {
  ASSERT_TRUE(store_->Put("a", "hello"));
  EXPECT_EQ(store_->Stat("a")->md5, "5d41402abc4b2a76b9719d911017c592");
  EXPECT_EQ(store_->List("", "")->objects[0].md5, "5d41402abc4b2a76b9719d911017c592");
  EXPECT_EQ(store_->List("", "")->objects[0].version, store_->Stat("a")->version);
}

TEST_P(RealS3, GivesUrlsThatAnybodyCanReadWith) {
  ASSERT_TRUE(store_->Put("a/b", "shared"));
  const auto url = store_->UrlOf("a/b", 60);
  ASSERT_TRUE(url);
  const auto parsed = ParseUrl(*url);
  ASSERT_TRUE(parsed);
  HttpClient client(parsed->origin);
  HttpRequest request;
  request.target = StrCat(parsed->path, "?", parsed->query);
  std::string body;
  auto answer = client.Call(request, &body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200) << body;
  EXPECT_EQ(body, "shared");
  request.target.replace(request.target.find("Expires=60"), 10, "Expires=61");
  answer = client.Call(request, &body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 403);
  EXPECT_EQ(store_->UrlOf("a/b", 8 * 86'400).error().code, ErrorCode::kUsage);
}

TEST_P(RealS3, SaysInOneLineWhatIsWrong) {
  const Error secret = ErrorWith([](S3TestServer* server) { server->access.secret += "x"; });
  EXPECT_EQ(secret.code, ErrorCode::kDenied);
  EXPECT_NE(secret.message.find("the secret key for 's3://"), std::string::npos) << secret.message;
  const Error key = ErrorWith([](S3TestServer* server) { server->access.access_key = "NOBODY"; });
  EXPECT_EQ(key.code, ErrorCode::kDenied) << key.message;
  const Error bucket = ErrorWith([](S3TestServer* server) { server->bucket = "no-such-bucket-here"; });
  EXPECT_EQ(bucket.code, ErrorCode::kNotFound);
  EXPECT_NE(bucket.message.find("there is no bucket 'no-such-bucket-here'"), std::string::npos)
      << bucket.message;
  EXPECT_NE(bucket.hint.find("s3 mb"), std::string::npos);
  for (const Error& error : {secret, key, bucket}) {
    EXPECT_EQ(error.message.find(GetParam().access.secret), std::string::npos);
    EXPECT_EQ(error.message.find('\n'), std::string::npos);
  }
}

TEST_P(RealS3, StatOfAMissingBucketNamesIt) {
  S3TestServer server = GetParam();
  server.bucket = "no-such-bucket-here";
  const auto store = OpenAt(server, "");
  const auto stat = store->Stat("x");
  ASSERT_FALSE(stat);
  EXPECT_NE(stat.error().message.find("there is no bucket"), std::string::npos) << stat.error().message;
}

// A clock that is an hour and a half off.
class LateClock : public PosixClock {
 public:
  int64_t WallUs() const override { return PosixClock::WallUs() - 5'400'000'000; }
};

TEST_P(RealS3, CorrectsItsClock) {
  const LateClock clock;
  auto service = S3Service::Open(GetParam().access, GetParam().bucket, clock);
  ASSERT_TRUE(service);
  S3Call call;
  call.query = {{"list-type", "2"}, {"max-keys", "1"}};
  std::string body;
  for (int i = 0; i < 2; ++i) {
    const auto answer = (*service)->Call(call, &body);
    ASSERT_TRUE(answer);
    EXPECT_FALSE(answer->problem) << answer->problem->code;
  }
}

TEST_P(RealS3, MakesABucketOnce) {
  S3TestServer server = GetParam();
  server.bucket = StrCat("made-", NewPutMark().substr(0, 12));
  const auto store = OpenAt(server, "");
  for (int i = 0; i < 2; ++i) {
    const auto made = store->MakeBucket();
    ASSERT_TRUE(made) << made.error().message;
  }
  EXPECT_TRUE(store->Put("x", "y"));
}

// Of services without conditional puts.
TEST_P(RealS3, RefusesLocksWhereTwoCouldHaveThem) {
  if (getenv("OVERCAP_TEST_S3_NO_CONDITIONS") == nullptr) GTEST_SKIP() << "NOT TESTED: it has conditions";
  const SleeplessClock clock;
  NumberedLock lock(*store_, "lock", clock);
  const auto take = lock.Take(OwnLockRecord(kLongestLeaseUs, clock.WallUs()));
  ASSERT_FALSE(take);
  EXPECT_EQ(take.error().code, ErrorCode::kUsage);
  EXPECT_NE(take.error().message.find("cannot keep locks: its service has no conditional put"),
            std::string::npos)
      << take.error().message;
  EXPECT_TRUE(store_->List("", "")->objects.empty());
}

// Through the proxy of tests/rigs/fault_proxy.py, where there is one.
TEST_P(RealS3, LosesNothingOnABadWay) {
  const char* way = getenv("OVERCAP_TEST_S3_FAULTY_ENDPOINT");
  if (way == nullptr) GTEST_SKIP() << "NOT TESTED: there is no way that goes wrong";
  S3StoreOptions options;
  options.part_size = kPart;
  options.tuning.retry = {20'000, 1'000'000, 90'000'000};
  options.tuning.deadlines.idle_us = 4'000'000;
  S3TestServer faulty = GetParam();
  faulty.access.endpoint = way;
  const auto store = S3Store::Open(faulty.access, faulty.bucket, prefix_, options);
  ASSERT_TRUE(store);
  RunThroughFaults(**store, *store_, 1, kPart + 100'000);
}

}  // namespace
}  // namespace overcap
