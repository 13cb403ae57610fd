// SPDX-License-Identifier: Apache-2.0
#include "control/stores/store_keys.h"

#include "base/text.h"
#include "control/expand_folder.h"
#include "control/stores/key_file.h"

namespace overcap {
namespace {

std::string First(std::initializer_list<std::string_view> values) {
  for (const std::string_view value : values) {
    if (!value.empty()) return std::string(value);
  }
  return {};
}

std::string ValueOf(const std::map<std::string, std::string>& section, const std::string& name) {
  const auto found = section.find(name);
  return found == section.end() ? "" : found->second;
}

std::string AwsFile(const Variables& variables, std::string_view variable, std::string_view name) {
  return First({variables.Get(variable), StrCat(variables.Get("HOME"), "/.aws/", name)});
}

// Nothing where there is no such file. ~/.aws/config mostly holds no keys, and may be read by others then.
Result<IniSections> ReadAwsFile(const std::string& path) {
  const Result<std::string> text = ReadPrivateFile(
      path, [](const std::string& read) { return read.find("aws_secret_access_key") != std::string::npos; });
  if (!text && text.error().code == ErrorCode::kNotFound) return IniSections();
  if (!text) return Fail(text.error());
  return ParseAwsFile(*text);
}

constexpr const char* kUnknownWays[] = {"credential_process", "sso_session",    "sso_start_url",
                                        "role_arn",           "source_profile", "web_identity_token_file"};

struct Profile {
  std::map<std::string, std::string> values;
  bool found = false;
};

Result<Profile> ReadProfile(const std::string& name, const Variables& variables) {
  Profile profile;
  OC_TRY(config, ReadAwsFile(AwsFile(variables, "AWS_CONFIG_FILE", "config")));
  OC_TRY(keys, ReadAwsFile(AwsFile(variables, "AWS_SHARED_CREDENTIALS_FILE", "credentials")));
  for (const auto* section : {&config, &keys}) {
    const std::string in_config = name == "default" ? name : "profile " + name;
    const auto found = section->find(section == &config ? in_config : name);
    if (found == section->end()) continue;
    profile.found = true;
    for (const auto& [key, value] : found->second) profile.values[key] = value;
  }
  return profile;
}

Result<void> TakeProfile(const std::string& name, const Profile& profile, bool of_entry,
                         StoreAccess::S3* access) {
  access->access_key = ValueOf(profile.values, "aws_access_key_id");
  access->secret = ValueOf(profile.values, "aws_secret_access_key");
  access->session_token = ValueOf(profile.values, "aws_session_token");
  if (!access->access_key.empty() && !access->secret.empty()) return {};
  for (const char* way : kUnknownWays) {
    if (profile.values.contains(way))
      return Fail(
          ErrorCode::kUsage,
          StrCat("profile ", Quoted(name), " gets its keys by '", way, "', which is not known here"),
          StrCat("aws configure export-credentials --profile ", ShellQuote(name),
                 " --format env prints keys for the environment",
                 of_entry ? ", which are used where the store has no 'profile:' in overcap.yaml" : ""));
  }
  return {};
}

Result<void> TakeStorageFile(const std::string& path, StoreAccess::S3* access) {
  OC_TRY(text, ReadPrivateFile(path));
  OC_TRY(file, ParseStorageFile(text, path));
  if (file.access_key.empty() || file.secret_key.empty())
    return Fail(ErrorCode::kUsage, StrCat(Quoted(path, 300), " has no 'access_key' and 'secret_key'"));
  access->access_key = file.access_key;
  access->secret = file.secret_key;
  access->session_token = file.session_token;
  if (!file.region.empty()) access->region = file.region;
  access->endpoint = file.endpoint;
  return {};
}

Error NoProfile(const std::string& name) {
  return {ErrorCode::kNotFound,
          StrCat("there is no profile ", Quoted(name), " in ~/.aws/credentials or ~/.aws/config"),
          StrCat("aws configure --profile ", ShellQuote(name))};
}

std::string OfProfile(const std::string& name) {
  return StrCat("profile ", Quoted(name), " of ~/.aws");
}

bool HasKeys(const StoreAccess::S3& access) {
  return !access.access_key.empty() && !access.secret.empty();
}

// Whether a profile is only asked for a region or an endpoint: then files that cannot be used are as good as
// none.
bool HasKeysElsewhere(const StoreEntry& entry, const Variables& variables) {
  if (!entry.credentials.empty()) return true;
  return entry.profile.empty() && !variables.Get("AWS_ACCESS_KEY_ID").empty() &&
         !variables.Get("AWS_SECRET_ACCESS_KEY").empty();
}

Result<std::string> CaFileOf(const StoreEntry& entry, const Variables& variables) {
  if (entry.ca_file.empty()) return std::string();
  return ExpandFolder(entry.ca_file, variables);
}

Result<void> FindS3Keys(const StoreEntry& entry, const Variables& variables, const InstanceKeys& instance,
                        const std::string& profile_name, const Profile& profile, StoreAccess::S3* access) {
  if (!entry.credentials.empty()) {
    OC_TRY(path, ExpandFolder(entry.credentials, variables));
    access->keys_from = path;
    return TakeStorageFile(path, access);
  }
  if (!entry.profile.empty()) {
    if (!profile.found) return Fail(NoProfile(profile_name));
    access->keys_from = OfProfile(profile_name);
    return TakeProfile(profile_name, profile, true, access);
  }
  access->access_key = variables.Get("AWS_ACCESS_KEY_ID");
  access->secret = variables.Get("AWS_SECRET_ACCESS_KEY");
  access->session_token = variables.Get("AWS_SESSION_TOKEN");
  access->keys_from = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  if (HasKeys(*access)) return {};
  access->keys_from = OfProfile(profile_name);
  if (!profile.found && !variables.Get("AWS_PROFILE").empty()) return Fail(NoProfile(profile_name));
  OC_TRY_VOID(TakeProfile(profile_name, profile, false, access));
  if (HasKeys(*access) || !instance || variables.Get("AWS_EC2_METADATA_DISABLED") == "true") return {};
  const Result<StoreAccess::S3> role = instance();
  if (!role && role.error().code != ErrorCode::kNotFound) return Fail(role.error());
  if (!role) return {};
  access->keys_from = "the role of this instance";
  access->access_key = role->access_key;
  access->secret = role->secret;
  access->session_token = role->session_token;
  return {};
}

// "AccountName=x;AccountKey=y;BlobEndpoint=z"
std::map<std::string, std::string> ConnectionParts(std::string_view text) {
  std::map<std::string, std::string> parts;
  for (const std::string& part : Split(text, ';')) {
    const size_t equals = part.find('=');
    if (equals != std::string::npos) parts[part.substr(0, equals)] = part.substr(equals + 1);
  }
  return parts;
}

// Of clouds of their own (China, governments) only the end of the host's name is told.
std::string EndpointOf(const std::map<std::string, std::string>& connection, const std::string& account) {
  const std::string suffix = ValueOf(connection, "EndpointSuffix");
  const bool own = suffix.empty() || suffix == "core.windows.net";
  if (connection.contains("BlobEndpoint") || own) return ValueOf(connection, "BlobEndpoint");
  const std::string protocol = First({ValueOf(connection, "DefaultEndpointsProtocol"), "https"});
  return StrCat(protocol, "://", account, ".blob.", suffix);
}

// What of the environment was not used, when nothing else was found: ": ..." or "".
std::string WhyNotUsed(const std::map<std::string, std::string>& connection, const std::string& wanted,
                       const Variables& variables) {
  const std::string of = ValueOf(connection, "AccountName");
  const std::string_view account = variables.Get("AZURE_STORAGE_ACCOUNT");
  if (!of.empty() && of != wanted)
    return StrCat(": AZURE_STORAGE_CONNECTION_STRING is of account ", Quoted(of));
  if (!variables.Get("AZURE_STORAGE_CONNECTION_STRING").empty())
    return ": AZURE_STORAGE_CONNECTION_STRING has neither AccountKey nor SharedAccessSignature";
  if (!account.empty() && account != wanted) return StrCat(": AZURE_STORAGE_ACCOUNT is ", Quoted(account));
  return "";
}

Result<void> TakeAzureFile(const std::string& path, const StoreLocation& location,
                           StoreAccess::Azure* access) {
  OC_TRY(text, ReadPrivateFile(path));
  OC_TRY(file, ParseStorageFile(text, path));
  const auto fits = [](const std::string& told, const std::string& wanted) {
    return told.empty() || told == wanted;
  };
  if (!fits(file.account_name, location.account) || !fits(file.container_name, location.bucket))
    return Fail(ErrorCode::kUsage, StrCat(Quoted(path, 300), " is for az://", file.account_name, "/",
                                          file.container_name, ", not for ", Quoted(location.Text(), 200)));
  if (file.account_key.empty() && file.sas_token.empty())
    return Fail(ErrorCode::kUsage, StrCat(Quoted(path, 300), " has neither 'account_key' nor 'sas_token'"));
  access->key = file.account_key;
  access->sas = file.account_key.empty() ? file.sas_token : "";
  if (access->endpoint.empty()) access->endpoint = file.endpoint;
  return {};
}

}  // namespace

Result<StoreAccess::S3> FindS3Access(const StoreEntry* entry, const Variables& variables,
                                     const InstanceKeys& instance) {
  const StoreEntry none;
  const StoreEntry& wish = entry != nullptr ? *entry : none;
  const std::string profile_name = First({wish.profile, variables.Get("AWS_PROFILE"), "default"});
  Result<Profile> read = ReadProfile(profile_name, variables);
  if (!read && !HasKeysElsewhere(wish, variables)) return Fail(read.error());
  const Profile profile = read ? std::move(*read) : Profile();
  OC_TRY(ca_file, CaFileOf(wish, variables));
  StoreAccess::S3 access;
  access.region.clear();
  OC_TRY_VOID(FindS3Keys(wish, variables, instance, profile_name, profile, &access));
  if (!HasKeys(access))
    return Fail(
        ErrorCode::kDenied, "no keys of S3 are to be found",
        "'aws configure' writes ~/.aws/credentials; or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
        "'credentials:' of the store in overcap.yaml");
  access.region =
      First({wish.region, access.region, variables.Get("AWS_REGION"), variables.Get("AWS_DEFAULT_REGION"),
             ValueOf(profile.values, "region"), "us-east-1"});
  access.endpoint = First({wish.endpoint, access.endpoint, variables.Get("AWS_ENDPOINT_URL_S3"),
                           variables.Get("AWS_ENDPOINT_URL"), ValueOf(profile.values, "endpoint_url")});
  access.path_style = wish.path_style.value_or(!access.endpoint.empty());
  access.ca_file = First({ca_file, variables.Get("AWS_CA_BUNDLE")});
  return access;
}

Result<StoreAccess::Azure> FindAzureAccess(const StoreLocation& location, const StoreEntry* entry,
                                           const Variables& variables) {
  const StoreEntry none;
  const StoreEntry& wish = entry != nullptr ? *entry : none;
  StoreAccess::Azure access;
  access.endpoint = wish.endpoint;
  OC_TRY(ca_file, CaFileOf(wish, variables));
  access.ca_file = ca_file;
  if (!wish.credentials.empty()) {
    OC_TRY(path, ExpandFolder(wish.credentials, variables));
    access.keys_from = path;
    OC_TRY_VOID(TakeAzureFile(path, location, &access));
    return access;
  }
  const auto connection = ConnectionParts(variables.Get("AZURE_STORAGE_CONNECTION_STRING"));
  if (const std::string account = ValueOf(connection, "AccountName");
      account.empty() || account == location.account) {
    access.keys_from = "AZURE_STORAGE_CONNECTION_STRING";
    access.key = ValueOf(connection, "AccountKey");
    access.sas = access.key.empty() ? ValueOf(connection, "SharedAccessSignature") : "";
    if (access.endpoint.empty()) access.endpoint = EndpointOf(connection, location.account);
  }
  const std::string_view account = variables.Get("AZURE_STORAGE_ACCOUNT");
  if (access.key.empty() && access.sas.empty() && (account.empty() || account == location.account)) {
    access.key = variables.Get("AZURE_STORAGE_KEY");
    if (access.key.empty()) access.sas = variables.Get("AZURE_STORAGE_SAS_TOKEN");
    access.keys_from = access.key.empty() ? "AZURE_STORAGE_SAS_TOKEN" : "AZURE_STORAGE_KEY";
  }
  if (access.endpoint.empty()) access.endpoint = variables.Get("AZURE_STORAGE_BLOB_ENDPOINT");
  if (access.key.empty() && access.sas.empty())
    return Fail(ErrorCode::kDenied,
                StrCat("no key of the storage account ", Quoted(location.account), " is to be found",
                       WhyNotUsed(connection, location.account, variables)),
                "set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or 'credentials: FILE' of the store in "
                "overcap.yaml");
  return access;
}

}  // namespace overcap
