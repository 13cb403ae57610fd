// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/repository.h"

#include <cstdio>

#include "base/text.h"

namespace overcap {
namespace {

constexpr char kConfigKey[] = "config", kCopyKey[] = "config-copy";

void FillIn(Repository::Parts* parts) {
  static const PosixClock clock;
  static KernelRandom random;
  if (parts->clock == nullptr) parts->clock = &clock;
  if (parts->random == nullptr) parts->random = &random;
}

std::string NewRepositoryId(Random& random) {
  char text[33];
  snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(random.Next()),
           static_cast<unsigned long long>(random.Next()));
  return text;
}

std::string Place(const Store& store) {
  return Quoted(store.Location(), 500);
}

tl::unexpected<Error> AlreadyThere(const Store& store) {
  return Fail(ErrorCode::kConflict, StrCat("there is a repository in ", Place(store), " already"));
}

Result<RepositoryConfig> ReadConfig(const Store& store, const char* key) {
  OC_TRY(text, store.Get(key));
  return DecodeRepositoryConfig(text, store.Location());
}

bool MayBeCopied(ErrorCode code) {
  return code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt;
}

// From `config`, or from its copy when that is lost or damaged.
Result<RepositoryConfig> ReadAnyConfig(const Store& store) {
  Result<RepositoryConfig> config = ReadConfig(store, kConfigKey);
  if (config || !MayBeCopied(config.error().code)) return config;
  Result<RepositoryConfig> copy = ReadConfig(store, kCopyKey);
  if (copy || copy.error().code == ErrorCode::kConflict) return copy;
  if (config.error().code != ErrorCode::kNotFound) return config;
  return Fail(ErrorCode::kNotFound, StrCat("there is no repository in ", Place(store)));
}

Result<std::optional<SecretKey>> OpenMaster(const RepositoryConfig& config, std::string_view secret,
                                            const Store& store) {
  if (!config.encryption && secret.empty()) return std::optional<SecretKey>();
  if (!config.encryption)
    return Fail(ErrorCode::kUsage, StrCat("the repository in ", Place(store), " is not encrypted"),
                "leave the passphrase or key file out, if this is the repository you mean");
  if (secret.empty())
    return Fail(ErrorCode::kDenied, StrCat("the repository in ", Place(store), " is encrypted"),
                "give its passphrase or key file");
  Result<SecretKey> master = OpenEncryption(*config.encryption, secret, config.id);
  if (master) return std::optional<SecretKey>(*master);
  Error error = std::move(master).error();
  error.message = StrCat("cannot open the repository in ", Place(store), ": ", error.message);
  return Fail(std::move(error));
}

// All that is restored is read by ranges: a service that cannot give them would take backups that cannot be
// restored.
Result<void> GivesRanges(const Store& store, const std::string& config) {
  std::string middle;
  OC_TRY_VOID(store.GetInto(kConfigKey, 1, static_cast<int64_t>(config.size()) - 2, &middle));
  if (middle == config.substr(1, config.size() - 2)) return {};
  return Fail(ErrorCode::kUnavailable, StrCat("the service of ", Place(store),
                                              " does not give back the part of an object that is asked for"));
}

}  // namespace

Result<Repository> Repository::Create(Parts parts, std::string_view secret, ChunkSizes chunks,
                                      ScryptCost cost) {
  FillIn(&parts);
  Store& store = *parts.store;
  for (const char* key : {kConfigKey, kCopyKey}) {
    const Result<StoredObjectInfo> there = store.Stat(key);
    if (there) return AlreadyThere(store);
    if (there.error().code != ErrorCode::kNotFound) return Fail(there.error());
  }
  RepositoryConfig config{NewRepositoryId(*parts.random), chunks, std::nullopt};
  std::optional<SecretKey> master;
  if (!secret.empty()) {
    OC_TRY(encryption, MakeEncryption(secret, config.id, cost));
    config.encryption = encryption.config;
    master = encryption.master;
  }
  const std::string text = EncodeRepositoryConfig(config);
  if (!DecodeRepositoryConfig(text, store.Location()))
    return Fail(ErrorCode::kUsage, "chunks of these sizes are not possible");
  const Result<void> put = store.Put(kConfigKey, text, PutMode::kCreate);
  if (!put && put.error().code == ErrorCode::kConflict) return AlreadyThere(store);
  OC_TRY_VOID(put);
  if (auto readable = GivesRanges(store, text); !readable) {
    (void)store.Remove(kConfigKey);
    return Fail(std::move(readable).error());
  }
  OC_TRY_VOID(store.Put(kCopyKey, text));
  return Repository(std::move(parts), std::move(config), std::move(master));
}

Result<Repository> Repository::Open(Parts parts, std::string_view secret) {
  FillIn(&parts);
  OC_TRY(config, ReadAnyConfig(*parts.store));
  OC_TRY(master, OpenMaster(config, secret, *parts.store));
  return Repository(std::move(parts), std::move(config), std::move(master));
}

Result<std::vector<std::string>> Repository::CheckConfig(bool mend) const {
  const std::string wanted = EncodeRepositoryConfig(config_);
  std::vector<std::string> wrong;
  for (const char* key : {kConfigKey, kCopyKey}) {
    const Result<std::string> text = store().Get(key);
    if (text && *text == wanted) continue;
    if (!text && !MayBeCopied(text.error().code)) return Fail(text.error());
    // A config of another writer, with members that this one does not know, is none to be mended.
    if (text && DecodeRepositoryConfig(*text, store().Location())) continue;
    wrong.push_back(StrCat("'", key, "' is ", text ? "damaged" : "missing"));
    if (mend) OC_TRY_VOID(store().Put(key, wanted));
  }
  return wrong;
}

Result<Digest> Repository::PutSealed(std::string_view kind, const std::string& key_begin,
                                     std::string_view plain) const {
  std::string sealed;
  if (master_) {
    OC_TRY(made, SealObject(*master_, config_.id, kind, plain));
    sealed = std::move(made);
  }
  const std::string_view stored = master_ ? std::string_view(sealed) : plain;
  const Digest id = Sha256Of(stored);
  OC_TRY_VOID(store().Put(key_begin + id.Hex(), stored));
  return id;
}

Result<std::string> Repository::GetSealed(std::string_view kind, const std::string& key) const {
  OC_TRY(stored, store().Get(key));
  if (!key.ends_with(Sha256Of(stored).Hex()))
    return Fail(ErrorCode::kCorrupt, StrCat(Quoted(key, 300), " in ", Place(store()), " is damaged"));
  if (!master_) return stored;
  Result<std::string> plain = OpenObject(*master_, config_.id, kind, stored);
  if (plain) return plain;
  Error error = std::move(plain).error();
  error.message = StrCat(Quoted(key, 300), " in ", Place(store()), ": ", error.message);
  return Fail(std::move(error));
}

}  // namespace overcap
