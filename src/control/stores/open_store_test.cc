// SPDX-License-Identifier: Apache-2.0
#include "control/stores/open_store.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "control/config.h"
#include "control/config_schema.h"
#include "control/transfer/overlap.h"
#include "stores/testing/quick_folder.h"

namespace overcap {
namespace {

class OpenStoreTest : public testing::Test {
 protected:
  OpenStoreTest() {
    book_.folder = "/home/me";
    book_.variables = Variables({"HOME=/home/me", "SCRATCH=/scratch"});
    book_.entries["data"].at = "s3://lab-data/qd";
    book_.entries["work"].at = "$SCRATCH/work";
  }
  std::string Place(const std::string& text) {
    const auto place = FindStorePlace(book_, text);
    return place ? place->location.Text() : "error: " + place.error().message;
  }
  StoreBook book_;
};

TEST_F(OpenStoreTest, NamesLeadToTheirLocations) {
  EXPECT_EQ(Place("data"), "s3://lab-data/qd");
  EXPECT_EQ(Place("data:"), "s3://lab-data/qd");
  EXPECT_EQ(Place("data:a//b/"), "s3://lab-data/qd/a/b");
  EXPECT_TRUE(FindStorePlace(book_, "data:a/")->location.open_end);
  EXPECT_FALSE(FindStorePlace(book_, "data:a")->location.open_end);
  EXPECT_TRUE(FindStorePlace(book_, "data")->location.open_end);
  EXPECT_EQ(FindStorePlace(book_, "data:a")->entry, "data");
  EXPECT_EQ(Place("work:x"), "/scratch/work/x");
  EXPECT_EQ(FindStorePlace(book_, "data:../x").error().code, ErrorCode::kUsage);
  EXPECT_EQ(FindStorePlace(book_, "none:x").error().code, ErrorCode::kUsage);
}

TEST_F(OpenStoreTest, TheRestIsAPathOrHasAScheme) {
  EXPECT_EQ(Place("./data"), "/home/me/data");
  EXPECT_EQ(Place("other"), "/home/me/other");
  EXPECT_EQ(Place("."), "/home/me");
  EXPECT_EQ(Place("~/x"), "/home/me/x");
  EXPECT_EQ(Place("s3://lab-data/x"), "s3://lab-data/x");
  EXPECT_EQ(FindStorePlace(book_, "s3://lab-data/x")->entry, "");
  EXPECT_EQ(FindStorePlace(book_, "gs://x").error().code, ErrorCode::kUsage);
}

TEST_F(OpenStoreTest, OpensFolders) {
  const QuickFolder folder;
  EXPECT_EQ(OpenStoreAt(book_, folder / "s", false).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(OpenStoreAt(book_, folder / "s", true));
  EXPECT_TRUE(OpenStoreAt(book_, folder / "s", false));
}

TEST_F(OpenStoreTest, UrlsAreOfBuckets) {
  const auto place = FindStorePlace(book_, "/x");
  EXPECT_EQ(UrlOfObject(book_, *place, "k", 60).error().code, ErrorCode::kUsage);
}

TEST(ConfigStores, BothForms) {
  Config config;
  const auto applied = ApplyConfigText(
      "stores:\n  data: s3://lab-data/qd\n  minio:\n    at: s3://scratch\n    endpoint: "
      "https://minio.lab:9000\n"
      "    path_style: true\n    profile: lab\n  blobs: {at: az://account1/cont, credentials: ~/s.yaml}\n",
      "overcap.yaml", &config);
  ASSERT_TRUE(applied) << applied.error().message;
  EXPECT_EQ(config.stores["data"].at, "s3://lab-data/qd");
  EXPECT_EQ(config.stores["minio"].endpoint, "https://minio.lab:9000");
  EXPECT_EQ(config.stores["minio"].path_style, true);
  EXPECT_EQ(config.stores["blobs"].credentials, "~/s.yaml");
  std::string shown;
  for (const EffectiveValue& value : EffectiveValues(config)) {
    if (value.path.starts_with("stores."))
      shown += StrCat(value.path, "=", value.value, "@", value.line, " ");
  }
  EXPECT_EQ(shown,
            "stores.blobs.at=az://account1/cont@8 stores.blobs.credentials=~/s.yaml@8 "
            "stores.data.at=s3://lab-data/qd@2 stores.minio.at=s3://scratch@3 "
            "stores.minio.endpoint=https://minio.lab:9000@3 stores.minio.profile=lab@3 "
            "stores.minio.path_style=true@3 ");
}

TEST(ConfigStores, ANearerFileHidesTheWholeEntry) {
  Config config;
  ASSERT_TRUE(ApplyConfigText("stores: {data: s3://near-data}\n", "near", &config));
  ASSERT_TRUE(ApplyConfigText("stores: {data: {at: s3://far-data, region: r}, more: /x}\n", "far", &config));
  EXPECT_EQ(config.stores["data"].at, "s3://near-data");
  EXPECT_EQ(config.stores["data"].region, "");
  EXPECT_EQ(config.stores["more"].at, "/x");
}

TEST(ConfigStores, WrongOnesAreNamedWithTheirLine) {
  for (const char* text :
       {"stores: 1\n", "stores: [a]\n", "stores: {a b: /x}\n", "stores: {a: []}\n", "stores: {a: {}}\n",
        "stores: {a: {at: gs://x}}\n", "stores: {a: relative/path}\n", "stores: {a: {at: /x, region: y}}\n",
        "stores: {a: {at: s3://bucket, acount: y}}\n", "stores: {a: {at: s3://bucket, path_style: maybe}}\n",
        "stores: {a: {at: s3://bucket, at: s3://bucket}}\n", "stores: {a: /x, a: /y}\n",
        "stores: {a: {at: ssh://host/x, profile: y}}\n", "stores: {a: s3://K:SECRETWORD@bucket}\n",
        "stores: {a: {at: s3://bucket, endpoint: 'https://u:SECRETWORD@host'}}\n",
        "stores: {a: {at: s3://bucket, endpoint: 'https://host/?sig=SECRETWORD'}}\n",
        "stores: {a: {at: s3://bucket, endpoint: 'SECRETWORD'}}\n",
        "stores: {a: {at: s3://bucket, credentials: keys.yaml}}\n",
        "stores: {a: {at: s3://bucket, ca_file: ../ca}}\n"}) {
    Config config;
    const auto applied = ApplyConfigText(text, "overcap.yaml", &config);
    ASSERT_FALSE(applied) << text;
    EXPECT_EQ(applied.error().code, ErrorCode::kUsage) << text;
    EXPECT_TRUE(applied.error().message.starts_with("overcap.yaml:1: ")) << applied.error().message;
    EXPECT_EQ(applied.error().message.find("SECRETWORD"), std::string::npos);
  }
}

TEST(ConfigStores, KeysAreRefusedAndNotRepeated) {
  for (const char* name : {"account_key", "sas_token", "secret_key", "aws_secret_access_key", "password"}) {
    Config config;
    const auto applied = ApplyConfigText(StrCat("stores: {a: {at: s3://bucket, ", name, ": SECRETWORD}}\n"),
                                         "overcap.yaml", &config);
    ASSERT_FALSE(applied) << name;
    EXPECT_EQ(applied.error().message.find("SECRETWORD"), std::string::npos);
    EXPECT_NE(applied.error().hint.find("credentials: FILE"), std::string::npos);
  }
}

TEST(RefuseOverlap, FoldersThatArePartOfEachOther) {
  const auto refused = [](const char* from, const char* to, bool removes) {
    return !RefuseOverlap(*ParseStoreLocation(from), *ParseStoreLocation(to), removes);
  };
  EXPECT_TRUE(refused("/a/b", "/a/b/", false));
  EXPECT_TRUE(refused("/a/b", "/a/b/c", false));
  EXPECT_TRUE(refused("/a/b", "/a/./x/../b/c", false));
  EXPECT_FALSE(refused("/a/b", "/a/bc", true));
  EXPECT_FALSE(refused("/a/b/c", "/a/b", false));
  EXPECT_TRUE(refused("/a/b/c", "/a/b", true));
  EXPECT_TRUE(refused("s3://bucket", "s3://bucket/x", false));
  EXPECT_FALSE(refused("s3://bucket/x", "s3://bucket/xy", true));
  EXPECT_FALSE(refused("s3://bucket/x", "az://account1/bucket/x", true));
}

}  // namespace
}  // namespace overcap
