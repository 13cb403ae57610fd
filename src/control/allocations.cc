// SPDX-License-Identifier: Apache-2.0
#include "control/allocations.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "control/ssh_keys.h"
#include "model/json_fields.h"
#include "sys/posix_files.h"

namespace overcap {
namespace {

constexpr std::string_view kSuffix = ".json";
constexpr size_t kLongestName = 40;

bool IsPlain(unsigned char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::string AllocationToJson(const HeldAllocation& allocation) {
  JsonWriter json;
  json.BeginObject();
  WriteBytes(&json, "name", allocation.name);
  WriteBytes(&json, "job", allocation.job);
  WriteBytes(&json, "cluster", allocation.cluster);
  WriteBytes(&json, "home", allocation.home);
  WriteBytes(&json, "binary", allocation.binary);
  WriteBytes(&json, "config", allocation.config);
  WriteBytes(&json, "user", allocation.user);
  WriteBytes(&json, "jump", allocation.jump);
  json.Key("variables").BeginArray();
  for (const std::string& variable : allocation.variables) WriteBytes(&json, variable);
  return json.EndArray().Field("made_us", allocation.made_us).EndObject().Take() + "\n";
}

Result<HeldAllocation> AllocationFromJson(std::string_view text) {
  OC_TRY(json, ParseJsonObject(text, "allocation"));
  HeldAllocation allocation;
  FieldReader reader(json, "allocation");
  reader.Read("name", &allocation.name);
  reader.Read("job", &allocation.job);
  reader.Read("cluster", &allocation.cluster);
  reader.Read("home", &allocation.home);
  reader.Read("binary", &allocation.binary);
  reader.Read("config", &allocation.config);
  reader.Read("user", &allocation.user);
  reader.Read("jump", &allocation.jump);
  reader.Read("variables", &allocation.variables);
  reader.Read("made_us", &allocation.made_us);
  OC_TRY_VOID(reader.Check());
  OC_TRY_VOID(CheckAllocationName(allocation.name));
  return allocation;
}

Result<void> CheckAllocationName(std::string_view name) {
  const bool plain =
      !name.empty() && name.size() <= kLongestName && IsPlain(static_cast<unsigned char>(name[0])) &&
      std::all_of(name.begin(), name.end(),
                  [](unsigned char c) { return IsPlain(c) || c == '_' || c == '-' || c == '.'; });
  if (plain && name != "last") return {};
  return Fail(ErrorCode::kUsage, StrCat("an allocation cannot be called ", Quoted(name)),
              StrCat("up to ", kLongestName, " letters, digits, '_', '-' and '.'"));
}

std::string RootOfAllocationFile(const std::string& file) {
  return std::filesystem::path(file).parent_path().parent_path().string();
}

SshHost SshHostOf(const HeldAllocation& allocation, const std::string& file, const std::string& node,
                  int attempt) {
  SshHost host;
  host.name = allocation.name;
  host.job = allocation.job;
  host.attempt = attempt;
  host.node = node;
  host.user = allocation.user;
  host.jump = allocation.jump;
  if (!host.jump.empty()) return host;
  const SshKeys keys = SshKeysOf(RootOfAllocationFile(file));
  host.proxy = {allocation.binary, "alloc", "connect", file};
  host.key = keys.Person();
  host.known_hosts = keys.KnownHosts();
  return host;
}

std::string AllocationBook::PathOf(std::string_view name) const {
  return StrCat(folder_, "/", name, kSuffix);
}

Result<void> AllocationBook::Add(const HeldAllocation& allocation) {
  PosixFiles files;
  OC_TRY_VOID(CheckAllocationName(allocation.name));
  OC_TRY_VOID(files.MakeFolders(folder_));
  auto made = files.CreateExclusive(PathOf(allocation.name), AllocationToJson(allocation));
  if (made || made.error().code != ErrorCode::kConflict) return made;
  return Fail(ErrorCode::kConflict, StrCat("there is an allocation '", allocation.name, "' already"),
              "--name gives this one another name");
}

std::optional<HeldAllocation> AllocationBook::Find(std::string_view name) const {
  if (!CheckAllocationName(name)) return std::nullopt;
  const auto text = PosixFiles().Read(PathOf(name));
  if (!text) return std::nullopt;
  auto allocation = AllocationFromJson(*text);
  if (!allocation || allocation->name != name) return std::nullopt;
  return std::move(*allocation);
}

std::vector<HeldAllocation> AllocationBook::All() const {
  std::vector<HeldAllocation> all;
  const auto names = PosixFiles().List(folder_);
  if (!names) return all;
  for (const std::string& file : *names) {
    if (!file.ends_with(kSuffix)) continue;
    auto found = Find(std::string_view(file).substr(0, file.size() - kSuffix.size()));
    if (found) all.push_back(std::move(*found));
  }
  return all;
}

void AllocationBook::Forget(const HeldAllocation& allocation) {
  const auto now = Find(allocation.name);
  if (now && now->job == allocation.job) (void)PosixFiles().Remove(PathOf(allocation.name));
}

}  // namespace overcap
