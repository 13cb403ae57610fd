// SPDX-License-Identifier: Apache-2.0
#include "control/stores/store_keys.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "base/text.h"
#include "control/stores/instance_keys.h"
#include "control/stores/key_file.h"
#include "stores/testing/quick_folder.h"

namespace overcap {
namespace {

// What no message may hold.
constexpr const char* kSecret = "SECRETWORD";

class StoreKeysTest : public testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = home_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), mode);
    return path;
  }
  Variables Environment(std::vector<std::string> more = {}) {
    more.push_back("HOME=" + home_.Path());
    more.push_back("AWS_SHARED_CREDENTIALS_FILE=" + (home_ / "credentials"));
    more.push_back("AWS_CONFIG_FILE=" + (home_ / "config"));
    return Variables(more);
  }
  Result<StoreAccess::S3> S3(const StoreEntry* entry = nullptr, std::vector<std::string> more = {}) {
    return Checked(FindS3Access(entry, Environment(std::move(more)), nullptr));
  }
  Result<StoreAccess::Azure> Azure(const StoreEntry* entry = nullptr, std::vector<std::string> more = {}) {
    return Checked(
        FindAzureAccess(*ParseStoreLocation("az://account1/cont"), entry, Environment(std::move(more))));
  }
  template <typename T>
  static Result<T> Checked(Result<T> result) {
    if (!result) {
      EXPECT_EQ(result.error().message.find(kSecret), std::string::npos) << result.error().message;
      EXPECT_EQ(result.error().hint.find(kSecret), std::string::npos) << result.error().hint;
    }
    return result;
  }

  const QuickFolder home_;
};

TEST_F(StoreKeysTest, NoKeysAreToldWithWhereToPutThem) {
  EXPECT_EQ(S3().error().code, ErrorCode::kDenied);
  EXPECT_NE(S3().error().hint.find("AWS_ACCESS_KEY_ID"), std::string::npos);
  EXPECT_EQ(Azure().error().code, ErrorCode::kDenied);
  EXPECT_NE(Azure().error().hint.find("AZURE_STORAGE_KEY"), std::string::npos);
}

TEST_F(StoreKeysTest, TheEnvironmentComesBeforeFiles) {
  File("credentials", "[default]\naws_access_key_id = FILE\naws_secret_access_key = SECRETWORD\n");
  const auto access = S3(nullptr, {"AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=x", "AWS_SESSION_TOKEN=t",
                                   "AWS_REGION=eu-west-1", "AWS_ENDPOINT_URL=http://127.0.0.1:9"});
  ASSERT_TRUE(access);
  EXPECT_EQ(access->access_key, "ENV");
  EXPECT_EQ(access->session_token, "t");
  EXPECT_EQ(access->region, "eu-west-1");
  EXPECT_EQ(access->endpoint, "http://127.0.0.1:9");
  EXPECT_TRUE(access->path_style);
  EXPECT_EQ(S3()->access_key, "FILE");
  EXPECT_FALSE(S3()->path_style);
  EXPECT_EQ(S3()->region, "us-east-1");
}

TEST_F(StoreKeysTest, ProfilesOfBothFiles) {
  File("credentials",
       "[default]\naws_access_key_id=D\naws_secret_access_key=x\n"
       "[lab]\n# a comment\naws_access_key_id = LAB ; another\naws_secret_access_key = SECRETWORD\n");
  File("config",
       "[profile lab]\nregion = eu-north-1\ns3 =\n  max_concurrent_requests = 20\n"
       "[profile all]\naws_access_key_id=ALL\naws_secret_access_key=x\nendpoint_url=https://minio\n");
  StoreEntry entry;
  entry.profile = "lab";
  ASSERT_TRUE(S3(&entry));
  EXPECT_EQ(S3(&entry)->access_key, "LAB");
  EXPECT_EQ(S3(&entry)->region, "eu-north-1");
  // The profile that the store names counts also against the environment.
  EXPECT_EQ(S3(&entry, {"AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=x"})->access_key, "LAB");
  EXPECT_EQ(S3(nullptr, {"AWS_PROFILE=all"})->access_key, "ALL");
  EXPECT_EQ(S3(nullptr, {"AWS_PROFILE=all"})->endpoint, "https://minio");
  entry.profile = "none";
  EXPECT_EQ(S3(&entry).error().code, ErrorCode::kNotFound);
}

TEST_F(StoreKeysTest, WaysThatAreNotKnownAreNamed) {
  File("config", "[profile sso]\nsso_session = x\nregion = y\n");
  StoreEntry entry;
  entry.profile = "sso";
  ASSERT_FALSE(S3(&entry));
  EXPECT_NE(S3(&entry).error().message.find("sso_session"), std::string::npos);
}

TEST_F(StoreKeysTest, FilesThatOthersMayReadAreRefusedWithTheChmod) {
  const std::string path =
      File("credentials", "[default]\naws_access_key_id=D\naws_secret_access_key=SECRETWORD\n", 0640);
  const auto access = S3();
  ASSERT_FALSE(access);
  EXPECT_EQ(access.error().code, ErrorCode::kDenied);
  EXPECT_EQ(access.error().hint, "chmod 600 " + path);
  File("credentials", "", 0644);
  File("config", "[default]\nregion = eu-west-3\n", 0644);
  EXPECT_EQ(S3(nullptr, {"AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=x"})->region, "eu-west-3");
  StoreEntry entry;
  entry.credentials = File("azure.yaml", "account_name: account1\naccount_key: SECRETWORD\n", 0604);
  EXPECT_EQ(Azure(&entry).error().hint, "chmod 600 " + entry.credentials);
}

TEST_F(StoreKeysTest, StorageFilesAreReadAsTheyAre) {
  StoreEntry entry;
  entry.credentials =
      File("a.yaml", "account_name: account1\naccount_key: a2V5\ncontainer_name: cont\nother: 1\n");
  ASSERT_TRUE(Azure(&entry)) << Azure(&entry).error().message;
  EXPECT_EQ(Azure(&entry)->key, "a2V5");
  entry.credentials = File("b.json", R"({"account_name": "account1", "sas_token": "?sv=1&sig=SECRETWORD"})");
  EXPECT_EQ(Azure(&entry)->sas, "?sv=1&sig=SECRETWORD");
  entry.credentials =
      File("c.yaml", "access_key: A\nsecret_key: SECRETWORD\nregion: r\nendpoint: http://x\n");
  EXPECT_EQ(S3(&entry)->secret, kSecret);
  EXPECT_EQ(S3(&entry)->region, "r");
  EXPECT_EQ(S3(&entry)->endpoint, "http://x");
}

TEST_F(StoreKeysTest, StorageFilesThatDoNotFitAreRefusedWithoutTheirKeys) {
  StoreEntry entry;
  for (const char* text :
       {"account_name: account2\naccount_key: SECRETWORD\n", "- SECRETWORD\n", "account_key: [SECRETWORD",
        "SECRETWORD", "account_name: account1\n", "account_key: {a: SECRETWORD}\n",
        "container_name: other\naccount_key: SECRETWORD\n", "\"SECRETWORD", ": : SECRETWORD: :"}) {
    entry.credentials = File("bad.yaml", text);
    ASSERT_FALSE(Azure(&entry)) << text;
    EXPECT_EQ(Azure(&entry).error().code, ErrorCode::kUsage) << text;
    ASSERT_FALSE(S3(&entry)) << text;
  }
  entry.credentials = home_ / "none";
  EXPECT_EQ(Azure(&entry).error().code, ErrorCode::kNotFound);
}

TEST_F(StoreKeysTest, AzureFromTheEnvironment) {
  EXPECT_EQ(Azure(nullptr, {"AZURE_STORAGE_KEY=k"})->key, "k");
  EXPECT_EQ(Azure(nullptr, {"AZURE_STORAGE_SAS_TOKEN=?s"})->sas, "?s");
  EXPECT_EQ(Azure(nullptr, {"AZURE_STORAGE_ACCOUNT=account1", "AZURE_STORAGE_KEY=k"})->key, "k");
  EXPECT_FALSE(Azure(nullptr, {"AZURE_STORAGE_ACCOUNT=another", "AZURE_STORAGE_KEY=SECRETWORD"}));
  const auto connection =
      Azure(nullptr, {"AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=http;AccountName=account1;"
                      "AccountKey=a2V5==;BlobEndpoint=http://127.0.0.1:10000/account1;"});
  ASSERT_TRUE(connection);
  EXPECT_EQ(connection->key, "a2V5==");
  EXPECT_EQ(connection->endpoint, "http://127.0.0.1:10000/account1");
}

TEST_F(StoreKeysTest, TheRoleOfAnInstanceComesLast) {
  int asked = 0;
  const InstanceKeys instance = [&]() -> Result<StoreAccess::S3> {
    ++asked;
    return ParseInstanceKeys(R"({"Code":"Success","AccessKeyId":"A","SecretAccessKey":"S","Token":"T"})");
  };
  const auto access = FindS3Access(nullptr, Environment(), instance);
  ASSERT_TRUE(access);
  EXPECT_EQ(access->access_key, "A");
  EXPECT_EQ(access->session_token, "T");
  EXPECT_FALSE(FindS3Access(nullptr, Environment({"AWS_EC2_METADATA_DISABLED=true"}), instance));
  EXPECT_TRUE(
      FindS3Access(nullptr, Environment({"AWS_ACCESS_KEY_ID=E", "AWS_SECRET_ACCESS_KEY=x"}), instance));
  EXPECT_EQ(asked, 1);
  for (const char* bad : {"", "{", "[]", "{}", R"({"AccessKeyId":1,"SecretAccessKey":"S"})", "<html>"})
    EXPECT_EQ(ParseInstanceKeys(bad).error().code, ErrorCode::kNotFound) << bad;
}

TEST(ParseAwsFile, TakesWhatIsThereAndNothingElse) {
  const IniSections sections =
      ParseAwsFile("stray = 1\n[a]\nx=1\n  nested = 2\ny = a=b # c\n;z = 3\n\n[ b ]\r\nx = 4\r\n[broken\n");
  EXPECT_EQ(sections.at("a").at("x"), "1");
  EXPECT_EQ(sections.at("a").at("y"), "a=b");
  EXPECT_EQ(sections.at("a").size(), 2u);
  EXPECT_EQ(sections.at("b").at("x"), "4");
}

TEST_F(StoreKeysTest, FilesThatAreNotNeededAreNotComplainedAbout) {
  File("credentials", "[default]\naws_access_key_id=D\naws_secret_access_key=SECRETWORD\n", 0644);
  EXPECT_EQ(S3().error().code, ErrorCode::kDenied);
  EXPECT_EQ(S3(nullptr, {"AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=x"})->access_key, "ENV");
  StoreEntry entry;
  entry.credentials = File("s3.yaml", "access_key: FILE\nsecret_key: SECRETWORD\n");
  EXPECT_EQ(S3(&entry)->access_key, "FILE");
  entry = {};
  entry.profile = "default";
  EXPECT_EQ(S3(&entry, {"AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=x"}).error().code,
            ErrorCode::kDenied);
}

TEST_F(StoreKeysTest, AProfileThatIsNotThereIsNamed) {
  File("credentials", "[default]\naws_access_key_id=D\naws_secret_access_key=SECRETWORD\n");
  const auto none = S3(nullptr, {"AWS_PROFILE=labb"});
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
  EXPECT_NE(none.error().message.find("there is no profile 'labb'"), std::string::npos);
}

TEST_F(StoreKeysTest, WaysToKeysThatAreNotKnownAreNamedWithWhatToDoInstead) {
  File("config", "[profile lab]\nsso_session = lab\n");
  const auto by_variable = S3(nullptr, {"AWS_PROFILE=lab"});
  EXPECT_NE(by_variable.error().message.find("'sso_session'"), std::string::npos);
  EXPECT_EQ(by_variable.error().hint.find("profile:"), std::string::npos);
  StoreEntry entry;
  entry.profile = "lab";
  EXPECT_NE(S3(&entry).error().hint.find("where the store has no 'profile:'"), std::string::npos);
}

TEST_F(StoreKeysTest, VariablesOfAnotherAccountAreNamed) {
  const auto why = [&](const std::string& variable) { return Azure(nullptr, {variable}).error().message; };
  EXPECT_NE(why("AZURE_STORAGE_CONNECTION_STRING=AccountName=other1;AccountKey=SECRETWORD").find("'other1'"),
            std::string::npos);
  for (const char* text : {"garbage", "UseDevelopmentStorage=true", "AccountName=account1"})
    EXPECT_NE(why(StrCat("AZURE_STORAGE_CONNECTION_STRING=", text)).find("neither AccountKey nor"),
              std::string::npos);
  EXPECT_NE(why("AZURE_STORAGE_ACCOUNT=other2").find("AZURE_STORAGE_ACCOUNT is 'other2'"), std::string::npos);
}

TEST_F(StoreKeysTest, AConnectionStringSaysWhichCloud) {
  const auto endpoint = [&](const std::string& rest) {
    return Azure(nullptr,
                 {StrCat("AZURE_STORAGE_CONNECTION_STRING=AccountName=account1;AccountKey=eA==;", rest)})
        ->endpoint;
  };
  EXPECT_EQ(endpoint("EndpointSuffix=core.windows.net"), "");
  EXPECT_EQ(endpoint("DefaultEndpointsProtocol=https;EndpointSuffix=core.chinacloudapi.cn"),
            "https://account1.blob.core.chinacloudapi.cn");
  EXPECT_EQ(endpoint("EndpointSuffix=x;BlobEndpoint=http://127.0.0.1:1/account1"),
            "http://127.0.0.1:1/account1");
}

TEST_F(StoreKeysTest, CertificatesMayStandBelowTheHomeFolder) {
  StoreEntry entry;
  entry.ca_file = "~/ca.pem";
  EXPECT_EQ(S3(&entry, {"AWS_ACCESS_KEY_ID=ENV", "AWS_SECRET_ACCESS_KEY=x"})->ca_file, home_ / "ca.pem");
  EXPECT_EQ(Azure(&entry, {"AZURE_STORAGE_KEY=eA=="})->ca_file, home_ / "ca.pem");
}

}  // namespace
}  // namespace overcap
