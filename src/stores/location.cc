// SPDX-License-Identifier: Apache-2.0
#include "stores/location.h"

#include <algorithm>

#include "base/text.h"

namespace overcap {
namespace {

constexpr std::string_view kHint =
    "locations are s3://bucket/prefix, az://account/container/prefix, ssh://[user@]host[:port]/path, or a "
    "path";

bool IsLower(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}
bool IsAlnum(char c) {
  return IsLower(c) || (c >= 'A' && c <= 'Z');
}

bool AllOf(std::string_view text, std::string_view others, bool upper) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (upper ? IsAlnum(c) : IsLower(c)) || others.find(c) != std::string_view::npos;
  });
}

bool IsBucket(std::string_view text) {
  return text.size() >= 3 && text.size() <= 63 && AllOf(text, ".-", false) && IsLower(text.front()) &&
         IsLower(text.back());
}

bool IsContainer(std::string_view text) {
  if (text == "$root" || text == "$web" || text == "$logs") return true;
  return IsBucket(text) && text.find('.') == std::string_view::npos;
}

bool IsAccount(std::string_view text) {
  return text.size() >= 3 && text.size() <= 24 && AllOf(text, "", false);
}

bool IsHost(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']'))
    return text.size() > 4 && AllOf(text.substr(1, text.size() - 2), ":.%", true);
  return !text.empty() && text.size() <= 253 && text[0] != '-' && AllOf(text, "._-", true);
}

bool IsUser(std::string_view text) {
  return !text.empty() && text.size() <= 64 && text[0] != '-' && AllOf(text, "._-@+\\", true);
}

// Up to the first '/', which goes too.
std::string_view TakePart(std::string_view* rest) {
  const size_t slash = rest->find('/');
  const std::string_view part = rest->substr(0, slash);
  rest->remove_prefix(std::min(rest->size(), slash == std::string_view::npos ? rest->size() : slash + 1));
  return part;
}

tl::unexpected<Error> Bad(std::string message) {
  return Fail(ErrorCode::kUsage, std::move(message), std::string(kHint));
}

// Without slashes at both ends and with single ones between.
Result<std::string> CleanPrefix(std::string_view text, std::string_view whole) {
  std::string clean;
  for (const std::string& part : Split(text, '/')) {
    if (part.empty()) continue;
    if (part == "." || part == "..")
      return Bad(StrCat(Quoted(whole, 200), ": a prefix cannot have '", part, "' in it"));
    if (part.find('\0') != std::string::npos) return Bad(StrCat(Quoted(whole, 200), " has a NUL in it"));
    if (!clean.empty()) clean += '/';
    clean += part;
  }
  return clean;
}

Result<StoreLocation> ParseS3(std::string_view rest, std::string_view whole) {
  StoreLocation location{.kind = StoreKind::kS3};
  const std::string_view bucket = TakePart(&rest);
  if (bucket.find('@') != std::string_view::npos || bucket.find(':') != std::string_view::npos)
    return Fail(ErrorCode::kUsage, "a location of S3 cannot hold keys; this one is s3://***@...",
                "put them into ~/.aws/credentials (chmod 600), or into a file that 'credentials:' in "
                "overcap.yaml names");
  if (!IsBucket(bucket))
    return Bad(StrCat(Quoted(bucket, 100), " in ", Quoted(whole, 200),
                      " cannot be a bucket: 3 to 63 of a-z, 0-9, '.' and '-'"));
  location.bucket = bucket;
  OC_TRY(prefix, CleanPrefix(rest, whole));
  location.prefix = std::move(prefix);
  return location;
}

Result<StoreLocation> ParseAzure(std::string_view rest, std::string_view whole) {
  StoreLocation location{.kind = StoreKind::kAzure};
  const std::string_view account = TakePart(&rest);
  if (account.find('@') != std::string_view::npos || whole.find("sig=") != std::string_view::npos)
    return Fail(ErrorCode::kUsage, "a location of Azure Blob Storage cannot hold keys; this one is az://***",
                "put them into a storage file (chmod 600) that 'credentials:' in overcap.yaml names");
  const std::string_view container = TakePart(&rest);
  if (!IsAccount(account))
    return Bad(StrCat(Quoted(account, 100), " in ", Quoted(whole, 200),
                      " cannot be a storage account: 3 to 24 of a-z and 0-9"));
  if (!IsContainer(container))
    return Bad(StrCat(Quoted(container, 100), " in ", Quoted(whole, 200),
                      " cannot be a container: 3 to 63 of a-z, 0-9 and '-'"));
  location.account = account;
  location.bucket = container;
  OC_TRY(prefix, CleanPrefix(rest, whole));
  location.prefix = std::move(prefix);
  return location;
}

Result<void> TakePort(std::string_view* host, int* port, std::string_view whole) {
  const size_t colon = host->rfind(':');
  const size_t bracket = host->rfind(']');
  if (colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket)) return {};
  const auto number = ParseInt(host->substr(colon + 1));
  if (!number || *number < 1 || *number > 65535)
    return Bad(StrCat(Quoted(host->substr(colon + 1)), " in ", Quoted(whole, 200), " is no port"));
  *port = static_cast<int>(*number);
  host->remove_suffix(host->size() - colon);
  return {};
}

// "/~/x" is below the home folder.
std::string SshPath(std::string_view rest) {
  std::string path = "/";
  path += rest;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path == "/~" || path.starts_with("/~/")) path.erase(0, 1);
  return path;
}

Result<StoreLocation> ParseSsh(std::string_view rest, std::string_view whole) {
  StoreLocation location{.kind = StoreKind::kSsh};
  const size_t slash = rest.find('/');
  if (slash == std::string_view::npos)
    return Bad(StrCat(Quoted(whole, 200), " says no path: ssh://host/path, or ssh://host/~/path"));
  std::string_view host = TakePart(&rest);
  if (const size_t at = host.rfind('@'); at != std::string_view::npos) {
    const std::string_view user = host.substr(0, at);
    if (user.find(':') != std::string_view::npos)
      return Fail(ErrorCode::kUsage, "a location of ssh cannot hold a password; this one is ssh://***@...",
                  "use a key: ssh-copy-id");
    if (!IsUser(user)) return Bad(StrCat(Quoted(user), " in ", Quoted(whole, 200), " is no user"));
    location.user = user;
    host.remove_prefix(at + 1);
  }
  OC_TRY_VOID(TakePort(&host, &location.port, whole));
  if (!IsHost(host)) return Bad(StrCat(Quoted(host), " in ", Quoted(whole, 200), " is no host"));
  location.host = host;
  if (rest.find('\0') != std::string_view::npos) return Bad(StrCat(Quoted(whole, 200), " has a NUL in it"));
  location.path = SshPath(rest);
  return location;
}

std::string Joined(std::string_view front, std::string_view back) {
  if (front.empty() || back.empty()) return StrCat(front, back);
  return StrCat(front, front.back() == '/' ? "" : "/", back);
}

}  // namespace

bool HasStoreScheme(std::string_view text) {
  if (text.starts_with("mem:")) return true;
  const size_t end = text.find("://");
  return end != std::string_view::npos && end > 0 && AllOf(text.substr(0, end), "+", true);
}

Result<StoreLocation> ParseStoreLocation(std::string_view text) {
  if (text.empty()) return Bad("'' is not the location of a store");
  const bool open_end = text.back() == '/';
  const auto parse = [&]() -> Result<StoreLocation> {
    if (text.starts_with("s3://")) return ParseS3(text.substr(5), text);
    if (text.starts_with("az://")) return ParseAzure(text.substr(5), text);
    if (text.starts_with("ssh://")) return ParseSsh(text.substr(6), text);
    if (text.starts_with("sftp://")) return ParseSsh(text.substr(7), text);
    if (text.starts_with("mem:"))
      return StoreLocation{.kind = StoreKind::kMemory, .path = std::string(text.substr(4))};
    if (HasStoreScheme(text))
      return Bad(StrCat("there are no stores of the kind ", Quoted(text.substr(0, text.find("://") + 3))));
    if (text.find('\0') != std::string_view::npos) return Bad(StrCat(Quoted(text, 200), " has a NUL in it"));
    return StoreLocation{.kind = StoreKind::kFolder, .path = std::string(text)};
  };
  Result<StoreLocation> location = parse();
  if (location) location->open_end = open_end;
  return location;
}

std::string StoreLocation::Text() const {
  switch (kind) {
    case StoreKind::kFolder:
      return path;
    case StoreKind::kMemory:
      return StrCat("mem:", path);
    case StoreKind::kS3:
      return Joined(StrCat("s3://", bucket), prefix);
    case StoreKind::kAzure:
      return Joined(StrCat("az://", account, "/", bucket), prefix);
    case StoreKind::kSsh:
      return StrCat("ssh://", user, user.empty() ? "" : "@", host, port > 0 ? StrCat(":", port) : "",
                    path.starts_with('/') ? "" : "/", path);
  }
  return path;
}

StoreLocation StoreLocation::Below(std::string_view more) const {
  StoreLocation below = *this;
  std::string& end = kind == StoreKind::kS3 || kind == StoreKind::kAzure ? below.prefix : below.path;
  end = Joined(end, more);
  below.open_end = false;
  return below;
}

std::string StoreLocation::Name() const {
  std::string_view end = kind == StoreKind::kS3 || kind == StoreKind::kAzure ? prefix : path;
  while (end.ends_with('/')) end.remove_suffix(1);
  return std::string(end.substr(end.rfind('/') + 1));
}

StoreLocation StoreLocation::Above() const {
  StoreLocation above = *this;
  const bool in_bucket = kind == StoreKind::kS3 || kind == StoreKind::kAzure;
  std::string& end = in_bucket ? above.prefix : above.path;
  while (end.size() > 1 && end.ends_with('/')) end.pop_back();
  const size_t slash = end.rfind('/');
  if (slash == std::string::npos)
    end = in_bucket ? "" : ".";
  else
    end.resize(slash == 0 ? 1 : slash);
  above.open_end = false;
  return above;
}

StoreName SplitStoreName(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  if (name.empty() || name.size() > 64 || name[0] == '.' || name[0] == '-' || !AllOf(name, "._-", true))
    return {};
  const std::string_view path = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (path.starts_with("//")) return {};
  return {std::string(name), std::string(path)};
}

}  // namespace overcap
