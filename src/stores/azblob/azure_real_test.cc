// SPDX-License-Identifier: Apache-2.0
// Against a real service: tests/stores/test_azblob.py starts it and this. Without one there is nothing to run
// here.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <thread>

#include "base/text.h"
#include "net/http/http_client.h"
#include "stores/azblob/azure_store.h"
#include "stores/azblob/testing/azure_server.h"
#include "stores/object_requests.h"
#include "stores/testing/fault_run.h"
#include "stores/testing/lock_conformance.h"
#include "stores/testing/store_conformance.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int64_t kPart = 1024 * 1024;

std::shared_ptr<AzureStore> OpenAt(const AzureTestServer& server, const std::string& prefix,
                                   KeyRule keys = KeyRule::kPlain, int page_size = 5000) {
  AzureStoreOptions options;
  options.keys = keys;
  options.part_size = kPart;
  options.tuning.page_size = page_size;
  auto store = AzureStore::Open(server.access, prefix, options);
  return store ? std::move(*store) : nullptr;
}

std::vector<StoreMaker> Makers() {
  std::vector<StoreMaker> makers;
  for (const AzureTestServer& server : AzureTestServer::FromEnvironment()) {
    const auto make = [server](std::string*) { return OpenAt(server, StrCat("t/", NewPutMark())); };
    const auto again = [server](Store& same) {
      const std::string root = StrCat("az://", server.access.account, "/", server.access.container, "/");
      return OpenAt(server, same.Location().substr(root.size()));
    };
    makers.push_back({"azblob", make, again, 4'000'000});
  }
  return makers;
}
INSTANTIATE_TEST_SUITE_P(Azure, StoreConformance, testing::ValuesIn(Makers()), ConformingStoreName);
INSTANTIATE_TEST_SUITE_P(Azure, LockConformance, testing::ValuesIn(Makers()), ConformingStoreName);

class RealAzure : public testing::TestWithParam<AzureTestServer> {
 protected:
  void SetUp() override { store_ = OpenAt(GetParam(), prefix_); }

  Error ErrorWith(const std::function<void(AzureAccess*)>& change) {
    AzureTestServer server = GetParam();
    change(&server.access);
    const auto store = AzureStore::Open(server.access, prefix_);
    if (!store) return store.error();
    const auto put = (*store)->Put("x", "y");
    return put ? Error{} : put.error();
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
  // The status and body of a GET of the URL, nothing else.
  std::string Fetch(const std::string& text) {
    const auto url = ParseUrl(text);
    if (!url) return url.error().message;
    HttpClient client(url->origin);
    HttpRequest request;
    request.target = StrCat(url->path, "?", url->query);
    std::string body;
    const auto answer = client.Call(request, &body);
    return answer ? StrCat(answer->status, answer->status == 200 ? " " + body : "") : answer.error().message;
  }

  const std::string prefix_ = StrCat("r/", NewPutMark());
  std::shared_ptr<AzureStore> store_;
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RealAzure);
INSTANTIATE_TEST_SUITE_P(Azure, RealAzure, testing::ValuesIn(AzureTestServer::FromEnvironment()));

TEST_P(RealAzure, TakesLargeObjectsInBlocksFromManyThreads) {
  const std::string large = Random(3 * kPart + 12'345);
  auto upload = store_->StartUpload("large", static_cast<int64_t>(large.size()), PutMode::kReplace);
  ASSERT_TRUE(upload) << upload.error().message;
  std::vector<std::thread> threads;
  for (int64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      const auto sent =
          (*upload)->Part(i, std::string_view(large).substr(static_cast<size_t>(i * kPart), kPart));
      EXPECT_TRUE(sent) << sent.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(store_->Stat("large"));
  for (int i = 0; i < 2; ++i) {  // as when the first answer was lost
    const auto finished = (*upload)->Finish();
    ASSERT_TRUE(finished) << finished.error().message;
  }
  EXPECT_TRUE(*store_->Get("large") == large);
}

TEST_P(RealAzure, GoesOnWithAnUploadThatWasCutOff) {
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
  auto other = store_->ResumeUpload("resumed", 3 * kPart, PutMode::kReplace, "source v2", 0);
  ASSERT_TRUE(other);
  EXPECT_FALSE((*other)->Has(0));
  auto second = store_->ResumeUpload("resumed", 3 * kPart, PutMode::kReplace, "source v1", 0);
  ASSERT_TRUE(second);
  EXPECT_TRUE((*second)->Has(0));
  EXPECT_FALSE((*second)->Has(1));
  EXPECT_TRUE((*second)->Has(2));
  ASSERT_TRUE((*second)->Part(1, part(1)));
  const auto finished = (*second)->Finish();
  ASSERT_TRUE(finished) << finished.error().message;
  EXPECT_TRUE(*store_->Get("resumed") == large);
}

TEST_P(RealAzure, CreatesLargeObjectsOnlyOnce) {
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
}

TEST_P(RealAzure, ListsNamesOfAllKindsPageByPage) {
  const auto any = OpenAt(GetParam(), prefix_, KeyRule::kAny, 3);
  std::vector<std::string> keys = {"a b", "a+b", "a&b=c", "p%20q", "\xc3\xa9t\xc3\xa9/x", "q#", "z'\""};
  for (const std::string& key : keys) {
    const auto put = any->Put(key, key);
    ASSERT_TRUE(put) << key << ": " << put.error().message;
    const auto got = any->Get(key);
    ASSERT_TRUE(got) << key << ": " << got.error().message;
    EXPECT_EQ(*got, key);
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
}

TEST_P(RealAzure, TellsMd5AndVersion) {
  ASSERT_TRUE(store_->Put("a", "hello"));
  EXPECT_EQ(store_->Stat("a")->md5, "5d41402abc4b2a76b9719d911017c592");
  EXPECT_EQ(store_->List("", "")->objects[0].md5, "5d41402abc4b2a76b9719d911017c592");
  EXPECT_EQ(store_->List("", "")->objects[0].version, store_->Stat("a")->version);
}

TEST_P(RealAzure, GivesUrlsThatAnybodyCanReadWith) {
  ASSERT_TRUE(store_->Put("a/b", "shared"));
  const auto url = store_->UrlOf("a/b", 60);
  ASSERT_TRUE(url);
  EXPECT_EQ(Fetch(*url), "200 shared");
  std::string other = *url;
  other.replace(other.find("sp=r"), 4, "sp=w");
  EXPECT_EQ(Fetch(other).substr(0, 3), "403");
}

TEST_P(RealAzure, WorksWithASharedAccessSignature) {
  ASSERT_TRUE(store_->Put("a", "shared"));
  const auto url = store_->UrlOf("a", 60);
  ASSERT_TRUE(url);
  AzureTestServer server = GetParam();
  server.access.key.clear();
  server.access.sas = url->substr(url->find('?'));  // of this one blob, to be read
  const auto store = OpenAt(server, prefix_);
  ASSERT_TRUE(store);
  EXPECT_EQ(*store->Get("a"), "shared");
  const auto put = store->Put("a", "other");
  ASSERT_FALSE(put);
  EXPECT_EQ(put.error().code, ErrorCode::kDenied);
  EXPECT_NE(put.error().message.find("not allowed to write 'a'"), std::string::npos) << put.error().message;
  EXPECT_EQ(store->UrlOf("a", 60).error().code, ErrorCode::kDenied);
  EXPECT_EQ(put.error().message.find("sig="), std::string::npos);
}

TEST_P(RealAzure, SaysInOneLineWhatIsWrong) {
  const Error key = ErrorWith([](AzureAccess* access) { access->key = "d3JvbmcgYnV0IGxvbmc="; });
  EXPECT_EQ(key.code, ErrorCode::kDenied);
  EXPECT_NE(key.message.find("the account key for 'az://"), std::string::npos) << key.message;
  const Error container = ErrorWith([](AzureAccess* access) { access->container = "no-such-container"; });
  EXPECT_EQ(container.code, ErrorCode::kNotFound);
  EXPECT_NE(container.message.find("there is no container 'no-such-container'"), std::string::npos);
  const Error expired = ErrorWith([](AzureAccess* access) {
    access->key.clear();
    access->sas = "?sv=2020-10-02&se=2020-01-01T00%3A00%3A00Z&sr=c&sp=rw&sig=abc%3D";
  });
  EXPECT_EQ(expired.code, ErrorCode::kDenied);
  EXPECT_NE(expired.message.find("has expired"), std::string::npos) << expired.message;
  const Error no_base64 = ErrorWith([](AzureAccess* access) { access->key = "!!"; });
  EXPECT_EQ(no_base64.code, ErrorCode::kUsage);
}

TEST_P(RealAzure, MakesAContainerOnce) {
  AzureTestServer server = GetParam();
  server.access.container = StrCat("made-", NewPutMark().substr(0, 12));
  const auto store = OpenAt(server, "");
  for (int i = 0; i < 2; ++i) {
    const auto made = store->MakeContainer();
    ASSERT_TRUE(made) << made.error().message;
  }
  EXPECT_TRUE(store->Put("x", "y"));
}

// Through the proxy of tests/rigs/fault_proxy.py, where there is one.
TEST_P(RealAzure, LosesNothingOnABadWay) {
  const char* way = getenv("OVERCAP_TEST_AZURE_FAULTY_ENDPOINT");
  if (way == nullptr) GTEST_SKIP() << "NOT TESTED: there is no way that goes wrong";
  AzureStoreOptions options;
  options.part_size = kPart;
  options.tuning.retry = {20'000, 1'000'000, 90'000'000};
  options.tuning.deadlines.idle_us = 4'000'000;
  AzureAccess access = GetParam().access;
  access.endpoint = way;
  const auto store = AzureStore::Open(access, prefix_, options);
  ASSERT_TRUE(store);
  RunThroughFaults(**store, *store_, 1, kPart + 100'000);
}

}  // namespace
}  // namespace overcap
