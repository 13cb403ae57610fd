// SPDX-License-Identifier: Apache-2.0
#include "control/stores/key_file.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yaml-cpp/yaml.h>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr size_t kMostBytes = 1 << 20;

Result<void> CheckOwner(const std::string& path, const struct stat& info) {
  if (!S_ISREG(info.st_mode)) return Fail(ErrorCode::kUsage, StrCat(Quoted(path, 300), " is not a file"));
  if (info.st_uid != geteuid() && info.st_uid != 0)
    return Fail(ErrorCode::kDenied, StrCat(Quoted(path, 300), " has keys in it and belongs to another user"),
                "use a copy of your own");
  if ((info.st_mode & 077) != 0)
    return Fail(ErrorCode::kDenied, StrCat(Quoted(path, 300), " has keys in it, and others may read it"),
                StrCat("chmod 600 ", ShellQuote(path)));
  return {};
}

// What follows '#' or ';' after a blank is a comment.
std::string_view WithoutComment(std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    if ((line[i] == '#' || line[i] == ';') && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
      return line.substr(0, i);
  }
  return line;
}

void Take(const YAML::Node& node, const char* name, std::string* to) {
  const YAML::Node value = node[name];
  if (value.IsDefined() && value.IsScalar()) *to = value.Scalar();
}

}  // namespace

Result<std::string> ReadPrivateFile(const std::string& path,
                                    const std::function<bool(const std::string& text)>& has_keys) {
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return Fail(ErrnoError(errno, StrCat("cannot read ", Quoted(path, 300))));
  struct stat info {};
  if (fstat(fd.Get(), &info) != 0) return Fail(ErrnoError(errno, StrCat("cannot read ", Quoted(path, 300))));
  if (!has_keys) OC_TRY_VOID(CheckOwner(path, info));
  std::string text(kMostBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(fd.Get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrnoError(errno, StrCat("cannot read ", Quoted(path, 300))));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > kMostBytes)
    return Fail(ErrorCode::kUsage, StrCat(Quoted(path, 300), " is larger than 1 MiB: no file of keys"));
  text.resize(size);
  if (has_keys && has_keys(text)) OC_TRY_VOID(CheckOwner(path, info));
  return text;
}

IniSections ParseAwsFile(std::string_view text) {
  IniSections sections;
  std::map<std::string, std::string>* section = nullptr;
  for (const std::string& raw : Split(text, '\n')) {
    const bool nested = raw.starts_with(' ') || raw.starts_with('\t');
    const std::string_view line = Trim(WithoutComment(raw));
    if (line.starts_with('[') && line.ends_with(']')) {
      section = &sections[std::string(Trim(line.substr(1, line.size() - 2)))];
      continue;
    }
    const size_t equals = line.find('=');
    if (section == nullptr || equals == std::string_view::npos || nested) continue;
    (*section)[std::string(Trim(line.substr(0, equals)))] = std::string(Trim(line.substr(equals + 1)));
  }
  return sections;
}

Result<StorageFile> ParseStorageFile(const std::string& text, const std::string& file) {
  const auto bad = [&] {
    return Fail(ErrorCode::kUsage, StrCat(Quoted(file, 300), " is no storage file"),
                "it has lines like 'account_name: ...' and 'account_key: ...'");
  };
  StorageFile storage;
  try {
    const YAML::Node node = YAML::Load(text);
    if (!node.IsMap()) return bad();
    Take(node, "account_name", &storage.account_name);
    Take(node, "account_key", &storage.account_key);
    Take(node, "sas_token", &storage.sas_token);
    Take(node, "container_name", &storage.container_name);
    for (const char* name : {"aws_access_key_id", "access_key"}) Take(node, name, &storage.access_key);
    for (const char* name : {"aws_secret_access_key", "secret_key"}) Take(node, name, &storage.secret_key);
    for (const char* name : {"aws_session_token", "session_token"}) Take(node, name, &storage.session_token);
    for (const char* name : {"endpoint_url", "endpoint"}) Take(node, name, &storage.endpoint);
    Take(node, "region", &storage.region);
    Take(node, "bucket_name", &storage.bucket_name);
  } catch (const std::exception&) {  // its words would repeat the line
    return bad();
  }
  return storage;
}

}  // namespace overcap
