// SPDX-License-Identifier: Apache-2.0
#include "daemon/installed_policy.h"

#include "base/text.h"
#include "model/policy/policy_text.h"

namespace overcap {
namespace {

Result<std::string> ReadBounded(const Files& files, const std::string& path) {
  OC_TRY(text, files.ReadRange(path, 0, static_cast<int64_t>(kMaxPolicyBytes) + 1));
  if (text.size() > kMaxPolicyBytes)
    return Fail(ErrorCode::kUsage, StrCat("'", path, "' is larger than a policy may be"));
  return text;
}

}  // namespace

InstalledPolicy::InstalledPolicy(Files& files, std::string root, std::string source)
    : files_(files), installed_(std::move(root) + "/policy.yaml"), source_(std::move(source)) {}

Result<std::optional<Policy>> InstalledPolicy::Load() {
  if (source_.empty()) return LoadInstalled();
  auto text = ReadBounded(files_, source_);
  auto policy = text ? ParsePolicy(*text, source_) : Result<Policy>(Fail(text.error()));
  if (policy) {
    text_ = *text;
    const auto there = files_.Read(installed_);
    if (!there || *there != text_) OC_TRY_VOID(files_.WriteAtomic(installed_, text_, true));
    return std::optional(*std::move(policy));
  }
  problem_ = policy.error().message;
  OC_TRY(before, LoadInstalled());
  if (!before) return Fail(policy.error());
  return before;
}

Result<std::optional<Policy>> InstalledPolicy::LoadInstalled() {
  auto text = ReadBounded(files_, installed_);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::optional<Policy>();
  if (!text) return Fail(text.error());
  OC_TRY(policy, ParsePolicy(*text, installed_));
  text_ = *std::move(text);
  return std::optional(std::move(policy));
}

Result<void> InstalledPolicy::Install(const std::string& text) {
  if (!source_.empty()) OC_TRY_VOID(files_.WriteAtomic(source_, text, true));
  OC_TRY_VOID(files_.WriteAtomic(installed_, text, true));
  text_ = text;
  problem_.clear();
  return {};
}

}  // namespace overcap
