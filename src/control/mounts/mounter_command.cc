// SPDX-License-Identifier: Apache-2.0
#include "control/mounts/mounter_command.h"

#include <algorithm>

#include "base/json_writer.h"
#include "base/text.h"

namespace overcap {
namespace {

constexpr int64_t kMiB = 1 << 20;

struct Request {
  const MountSpec& mount;
  const StoreLocation& location;
  const StoreAccess& access;
  const MountPlaces& places;
  bool read_only() const { return mount.mode == MountMode::kRead; }
  int64_t cache_mib() const { return std::max<int64_t>(1, mount.cache_bytes / kMiB); }
};

using Words = std::vector<std::string>;

void Add(Words* words, std::initializer_list<std::string> more) {
  words->insert(words->end(), more);
}

// AWS's own variables, for a mounter that reads them. Those of the submitter must not count.
Words AwsVariables(const StoreAccess::S3& s3) {
  return {StrCat("AWS_ACCESS_KEY_ID=", s3.access_key),
          StrCat("AWS_SECRET_ACCESS_KEY=", s3.secret),
          StrCat("AWS_SESSION_TOKEN=", s3.session_token),
          "AWS_PROFILE=",
          "AWS_ROLE_ARN=",
          "AWS_EC2_METADATA_DISABLED=true"};
}

// Lines of rclone's file are name = value: no value of ours may begin another line.
class RcloneFile {
 public:
  void Set(std::string_view name, const std::string& value) {
    if (value.empty()) return;
    if (value.find_first_of("\r\n") != std::string::npos) broken_ = true;
    text_ += StrCat(name, " = ", value, "\n");
  }
  Result<std::string> Take() {
    if (broken_) return Fail(ErrorCode::kUsage, "a setting of the store has a line break in it");
    return text_;
  }

 private:
  std::string text_ = "[overcap]\n";
  bool broken_ = false;
};

Result<std::string> RcloneS3(const Request& in) {
  const StoreAccess::S3& s3 = in.access.s3;
  RcloneFile file;
  file.Set("type", "s3");
  file.Set("provider", s3.endpoint.empty() ? "AWS" : "Other");
  file.Set("access_key_id", s3.access_key);
  file.Set("secret_access_key", s3.secret);
  file.Set("session_token", s3.session_token);
  file.Set("region", s3.region);
  file.Set("endpoint", s3.endpoint);
  file.Set("force_path_style", s3.path_style ? "true" : "false");
  file.Set("no_check_bucket", "true");
  return file.Take();
}

std::string WithoutSlash(std::string text) {
  while (text.ends_with('/')) text.pop_back();
  return text;
}

std::string SasOf(const StoreAccess::Azure& azure) {
  return azure.sas.starts_with('?') ? azure.sas.substr(1) : azure.sas;
}

// The account's own address. An emulator's has the account as a path.
std::string AzureEndpoint(const Request& in) {
  const std::string own = WithoutSlash(in.access.azure.endpoint);
  return own.empty() ? StrCat("https://", in.location.account, ".blob.core.windows.net") : own;
}

// rclone is told the domain behind the account's name. kUsage for an address of another form.
Result<std::string> AzureDomain(const Request& in) {
  const std::string address = WithoutSlash(in.access.azure.endpoint);
  const std::string begin = StrCat("https://", in.location.account, ".");
  if (address.empty()) return address;
  if (address.starts_with(begin) && address.find('/', begin.size()) == std::string::npos)
    return address.substr(begin.size());
  return Fail(ErrorCode::kUsage,
              StrCat("rclone takes an account key only for an address like '", begin, "DOMAIN', not ",
                     Quoted(address, 200)),
              "use a sas_token or 'mode: copy'");
}

Result<std::string> RcloneAzure(const Request& in) {
  const StoreAccess::Azure& azure = in.access.azure;
  RcloneFile file;
  file.Set("type", "azureblob");
  if (azure.sas.empty()) {
    file.Set("account", in.location.account);
    file.Set("key", azure.key);
    OC_TRY(domain, AzureDomain(in));
    file.Set("endpoint", domain);
  } else {
    file.Set("sas_url", StrCat(AzureEndpoint(in), "/", in.location.bucket, "?", SasOf(azure)));
  }
  return file.Take();
}

std::string BelowBucket(const StoreLocation& location) {
  return location.prefix.empty() ? location.bucket : StrCat(location.bucket, "/", location.prefix);
}

Result<MounterCommand> Rclone(const Request& in) {
  MounterCommand command;
  OC_TRY(config, in.location.kind == StoreKind::kS3 ? RcloneS3(in) : RcloneAzure(in));
  command.config = std::move(config);
  command.env = {"AWS_CA_BUNDLE="};  // it fails to start with it; it is told by a flag
  command.argv = {"rclone",        "mount",        StrCat("overcap:", BelowBucket(in.location)),
                  in.places.point, "--config",     in.places.config,
                  "--cache-dir",   in.places.cache};
  if (in.read_only()) Add(&command.argv, {"--read-only"});
  const bool whole = in.mount.cache_bytes > 0;
  if (whole || !in.read_only())
    Add(&command.argv, {"--vfs-cache-mode", whole ? "full" : "writes", "--vfs-write-back", "1s"});
  if (whole) Add(&command.argv, {"--vfs-cache-max-size", StrCat(in.cache_mib(), "M")});
  const std::string& ca_file =
      in.location.kind == StoreKind::kS3 ? in.access.s3.ca_file : in.access.azure.ca_file;
  if (!ca_file.empty()) Add(&command.argv, {"--ca-cert", ca_file});
  return command;
}

// YAML is a superset of JSON, whose quoting is known.
std::string BlobfuseConfig(const Request& in) {
  const StoreAccess::Azure& azure = in.access.azure;
  JsonWriter out;
  out.BeginObject().Field("foreground", true).Field("read-only", in.read_only());
  out.Key("logging").BeginObject().Field("type", "base").Field("level", "log_warning");
  out.Field("file-path", in.places.log).EndObject();
  out.Field("default-working-dir", in.places.cache);  // not ~/.blobfuse2
  out.Key("components").BeginArray();
  for (const char* part : {"libfuse", "file_cache", "attr_cache", "azstorage"}) out.String(part);
  out.EndArray().Key("libfuse").BeginObject();
  for (const char* time : {"attribute-expiration-sec", "entry-expiration-sec"}) out.Field(time, int64_t{120});
  out.EndObject().Key("file_cache").BeginObject().Field("path", in.places.cache + "/files");
  out.Field("timeout-sec", int64_t{120});
  // One that is started again finds what the one before left, and both are needed to begin anew.
  out.Field("allow-non-empty-temp", true).Field("cleanup-on-start", true);
  if (in.mount.cache_bytes > 0) out.Field("max-size-mb", in.cache_mib());
  out.EndObject().Key("attr_cache").BeginObject().Field("timeout-sec", int64_t{120}).EndObject();
  out.Key("azstorage").BeginObject().Field("type", "block").Field("account-name", in.location.account);
  out.Field("container", in.location.bucket).Field("mode", azure.sas.empty() ? "key" : "sas");
  if (azure.sas.empty()) {
    out.Field("account-key", azure.key);
  } else {
    out.Field("sas", SasOf(azure));
  }
  out.Field("endpoint", AzureEndpoint(in));
  if (!in.location.prefix.empty()) out.Field("subdirectory", in.location.prefix);
  return out.EndObject().EndObject().Take() + "\n";
}

Result<MounterCommand> Blobfuse(const Request& in) {
  MounterCommand command;
  command.config = BlobfuseConfig(in);
  // Without the last it asks its maker's server for a newer version first, 8 s long where that is not
  // reached.
  command.argv = {"blobfuse2",     "mount",
                  in.places.point, StrCat("--config-file=", in.places.config),
                  "--foreground",  "--disable-version-check"};
  if (in.read_only()) Add(&command.argv, {"--read-only"});
  // These would count before the file, and may be of another account.
  for (const char* name : {"ACCOUNT", "ACCOUNT_TYPE", "ACCESS_KEY", "SAS_TOKEN", "AUTH_TYPE", "BLOB_ENDPOINT",
                           "ACCOUNT_CONTAINER"})
    command.env.push_back(StrCat("AZURE_STORAGE_", name, "="));
  return command;
}

// All its words are the user's, but for the mount point; keys of S3 are in its environment.
MounterCommand Raw(const std::string& mounter, const Request& in) {
  MounterCommand command;
  command.argv = {mounter};
  for (const std::string& word : in.mount.options)
    command.argv.push_back(word == kMountPointWord ? in.places.point : word);
  if (in.location.kind == StoreKind::kS3) command.env = AwsVariables(in.access.s3);
  return command;
}

}  // namespace

Result<MounterCommand> ComposeMounter(const std::string& mounter, const MountSpec& mount,
                                      const StoreLocation& location, const StoreAccess& access,
                                      const MountPlaces& places) {
  const Request in{mount, location, access, places};
  if (HasRawMounter(mount)) return Raw(mounter, in);
  OC_TRY(command, mounter == "rclone" ? Rclone(in) : Blobfuse(in));
  command.argv.insert(command.argv.end(), mount.options.begin(), mount.options.end());
  return command;
}

}  // namespace overcap
