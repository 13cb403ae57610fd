// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mounter_command.h"

#include <algorithm>
#include <gtest/gtest.h>

#include "base/text.h"

namespace overcap {
namespace {

const MountPlaces kPlaces = {"/m/data", "/m/.data.cache", "/m/.data.yaml", "/j/mount-data.log"};

struct Case {
  std::string mounter, store;
  MountMode mode = MountMode::kRead;
  int64_t cache = 0;
  std::vector<std::string> options = {};
  std::string argv = {};
};

StoreAccess Keys() {
  StoreAccess access;
  access.s3 = {"", "eu-west-1", "AKID", "S3SECRET", "", false, ""};
  access.azure = {"", "QVpLRVk=", "", ""};
  return access;
}

MountSpec Mount(const Case& each) {
  MountSpec mount;
  mount.name = mount.at = "data";
  mount.store = each.store;
  mount.mode = each.mode;
  mount.mounter = each.mounter;
  mount.cache_bytes = each.cache;
  mount.options = each.options;
  return mount;
}

Result<MounterCommand> Compose(const Case& each, const StoreAccess& access) {
  return ComposeMounter(each.mounter, Mount(each), *ParseStoreLocation(each.store), access, kPlaces);
}

TEST(MounterCommand, EachMounterIsToldInItsOwnWords) {
  const Case cases[] = {
      {"rclone",
       "s3://bucket/a/b",
       MountMode::kRead,
       0,
       {},
       "rclone mount overcap:bucket/a/b /m/data --config /m/.data.yaml --cache-dir /m/.data.cache "
       "--read-only"},
      {"rclone",
       "s3://bucket",
       MountMode::kWrite,
       0,
       {"--dir-cache-time", "5s"},
       "rclone mount overcap:bucket /m/data --config /m/.data.yaml --cache-dir /m/.data.cache "
       "--vfs-cache-mode "
       "writes "
       "--vfs-write-back 1s --dir-cache-time 5s"},
      {"rclone",
       "az://account/container/p",
       MountMode::kRead,
       int64_t{50} << 30,
       {},
       "rclone mount overcap:container/p /m/data --config /m/.data.yaml --cache-dir /m/.data.cache "
       "--read-only "
       "--vfs-cache-mode full --vfs-write-back 1s --vfs-cache-max-size 51200M"},
      {"blobfuse2",
       "az://account/container/p",
       MountMode::kRead,
       0,
       {"--log-level=LOG_WARNING"},
       "blobfuse2 mount /m/data --config-file=/m/.data.yaml --foreground --disable-version-check --read-only "
       "--log-level=LOG_WARNING"},
      {"blobfuse2",
       "az://account/container",
       MountMode::kWrite,
       0,
       {},
       "blobfuse2 mount /m/data --config-file=/m/.data.yaml --foreground --disable-version-check"},
      {"goofys",
       "s3://bucket/a/b",
       MountMode::kRead,
       0,
       {"-f", "--stat-cache-ttl", "1m", "bucket:a/b", "MOUNTPOINT"},
       "goofys -f --stat-cache-ttl 1m bucket:a/b /m/data"},
      {"sshfs",
       "ssh://me@host:2222/data/x",
       MountMode::kRead,
       0,
       {"me@host:/data/x", "MOUNTPOINT", "-f", "-o", "ro", "-p", "2222"},
       "sshfs me@host:/data/x /m/data -f -o ro -p 2222"},
  };
  for (const Case& each : cases) {
    const auto command = Compose(each, Keys());
    ASSERT_TRUE(command) << command.error().message;
    EXPECT_EQ(ShellJoin(command->argv), each.argv);
  }
}

TEST(MounterCommand, AServiceOfOnesOwnIsNamed) {
  StoreAccess access = Keys();
  access.s3.endpoint = "https://ceph:7480";
  access.s3.path_style = true;
  access.s3.ca_file = "/ca.pem";
  const auto rclone = Compose({"rclone", "s3://bucket"}, access);
  EXPECT_EQ(rclone->argv.back(), "/ca.pem");
  EXPECT_EQ(
      rclone->config,
      "[overcap]\ntype = s3\nprovider = Other\naccess_key_id = AKID\nsecret_access_key = S3SECRET\n"
      "region = eu-west-1\nendpoint = https://ceph:7480\nforce_path_style = true\nno_check_bucket = true\n");
}

TEST(MounterCommand, KeysAreInNoCommandLine) {
  StoreAccess access = Keys();
  access.azure.sas = "?sv=1&sig=SASSIGN";
  const std::pair<std::string, std::string> all[] = {{"rclone", "s3://bucket"},
                                                     {"goofys", "s3://bucket"},
                                                     {"rclone", "az://account/cont"},
                                                     {"blobfuse2", "az://account/cont"}};
  for (const bool sas : {true, false}) {
    if (!sas) access.azure.sas.clear();
    for (const auto& [mounter, store] : all) {
      const auto command = Compose({mounter, store}, access);
      ASSERT_TRUE(command);
      const std::string words = ShellJoin(command->argv);
      for (const char* key : {"AKID", "S3SECRET", "QVpLRVk=", "SASSIGN"})
        EXPECT_EQ(words.find(key), std::string::npos) << words;
      const bool in_file = command->config.find(store[0] == 's' ? "S3SECRET"
                                                : sas           ? "SASSIGN"
                                                                : "QVpLRVk=") != std::string::npos;
      EXPECT_EQ(in_file, mounter == "rclone" || mounter == "blobfuse2") << mounter;
    }
  }
}

TEST(MounterCommand, ARawMounterHasTheKeysOfS3InItsEnvironment) {
  const auto command = Compose({"goofys", "s3://bucket"}, Keys());
  ASSERT_TRUE(command);
  EXPECT_EQ(command->config, "");
  EXPECT_NE(std::ranges::find(command->env, "AWS_SECRET_ACCESS_KEY=S3SECRET"), command->env.end());
  EXPECT_TRUE(Compose({"sshfs", "ssh://host/x"}, Keys())->env.empty());
}

TEST(MounterCommand, KeysOfAzureAreInTheFileOfTheirMounter) {
  StoreAccess access = Keys();
  const auto key =
      Compose({"blobfuse2", "az://account/cont/a/b", MountMode::kWrite, int64_t{2} << 30}, access);
  for (const char* part :
       {"\"account-name\":\"account\"", "\"container\":\"cont\"", "\"mode\":\"key\"",
        "\"account-key\":\"QVpLRVk=\"", "\"endpoint\":\"https://account.blob.core.windows.net\"",
        "\"subdirectory\":\"a/b\"", "\"max-size-mb\":2048", "\"path\":\"/m/.data.cache/files\"",
        "\"read-only\":false"})
    EXPECT_NE(key->config.find(part), std::string::npos) << part << " in " << key->config;
  access.azure.sas = "?sv=1&sig=x";
  access.azure.endpoint = "http://127.0.0.1:10000/account/";
  EXPECT_NE(Compose({"blobfuse2", "az://account/cont"}, access)->config.find("\"sas\":\"sv=1&sig=x\""),
            std::string::npos);
  EXPECT_EQ(Compose({"rclone", "az://account/cont"}, access)->config,
            "[overcap]\ntype = azureblob\nsas_url = http://127.0.0.1:10000/account/cont?sv=1&sig=x\n");
}

// Its variables count before its file: those of the submitter may be of another account.
TEST(MounterCommand, BlobfuseHearsOfNoOtherAccountAndLeavesNothingElsewhere) {
  const auto command = Compose({"blobfuse2", "az://account/cont"}, Keys());
  ASSERT_TRUE(command);
  for (const char* name : {"AZURE_STORAGE_ACCOUNT=", "AZURE_STORAGE_ACCESS_KEY=", "AZURE_STORAGE_SAS_TOKEN=",
                           "AZURE_STORAGE_BLOB_ENDPOINT=", "AZURE_STORAGE_ACCOUNT_CONTAINER="})
    EXPECT_NE(std::ranges::find(command->env, name), command->env.end()) << name;
  for (const char* part :
       {"\"default-working-dir\":\"/m/.data.cache\"", "\"file-path\":\"/j/mount-data.log\"",
        "\"allow-non-empty-temp\":true", "\"cleanup-on-start\":true"})
    EXPECT_NE(command->config.find(part), std::string::npos) << part << " in " << command->config;
}

TEST(MounterCommand, RcloneIsToldTheDomainOfAnAccount) {
  StoreAccess access = Keys();
  access.azure.endpoint = "https://account.blob.core.usgovcloudapi.net/";
  EXPECT_EQ(Compose({"rclone", "az://account/cont"}, access)->config,
            "[overcap]\ntype = azureblob\naccount = account\nkey = QVpLRVk=\nendpoint = "
            "blob.core.usgovcloudapi.net\n");
  access.azure.endpoint = "http://127.0.0.1:10000/account";
  const auto emulator = Compose({"rclone", "az://account/cont"}, access);
  ASSERT_FALSE(emulator);
  EXPECT_NE(emulator.error().hint.find("mode: copy"), std::string::npos);
}

TEST(MounterCommand, NoValueBeginsALineOfItsOwn) {
  StoreAccess access = Keys();
  access.s3.secret = "x\ntype = local";
  EXPECT_FALSE(Compose({"rclone", "s3://bucket"}, access));
}

}  // namespace
}  // namespace overcap
