// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"
#include "base/text.h"
#include "snapshot/format/json_members.h"
#include "snapshot/format/snapshot_record.h"

namespace overcap {
namespace {

constexpr std::string_view kFormat = "overcap repository", kCheck = ",\"check\":\"", kEnd = "\"}\n";
constexpr std::string_view kCipher = "aes-256-gcm", kKdf = "scrypt";
constexpr int64_t kVersion = 2;
constexpr size_t kIdDigits = 32, kSaltSize = 32, kMasterSize = 60;

std::string HexText(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

int HexValue(char digit) {
  return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// Exactly `size` bytes.
bool FromHexText(std::string_view hex, size_t size, std::string* bytes) {
  if (hex.size() != 2 * size) return false;
  bytes->clear();
  for (size_t i = 0; i < hex.size(); i += 2) {
    const int high = HexValue(hex[i]), low = HexValue(hex[i + 1]);
    if (high < 0 || low < 0) return false;
    bytes->push_back(static_cast<char>(high << 4 | low));
  }
  return true;
}

void WriteEncryption(const EncryptionConfig& encryption, JsonWriter* json) {
  json->BeginObject().Field("cipher", kCipher).Field("kdf", kKdf);
  json->Field("n", encryption.n).Field("r", encryption.r).Field("p", encryption.p);
  json->Field("salt", HexText(encryption.salt)).Field("master", HexText(encryption.master)).EndObject();
}

bool ReadEncryption(const JsonMembers& json, EncryptionConfig* encryption) {
  std::string cipher, kdf, salt, master;
  return json.Read("cipher", &cipher) && cipher == kCipher && json.Read("kdf", &kdf) && kdf == kKdf &&
         json.Read("n", &encryption->n) && json.Read("r", &encryption->r) && json.Read("p", &encryption->p) &&
         json.Read("salt", &salt) && FromHexText(salt, kSaltSize, &encryption->salt) &&
         json.Read("master", &master) && FromHexText(master, kMasterSize, &encryption->master);
}

bool SoundSizes(const ChunkSizes& sizes) {
  constexpr int64_t kChunkLimit = 8'388'608, kSegmentLimit = int64_t{1} << 30;
  return sizes.min >= 64 && sizes.min <= sizes.average && sizes.average <= sizes.max &&
         sizes.max <= kChunkLimit && sizes.max <= sizes.segment && sizes.segment <= kSegmentLimit;
}

bool ReadConfig(const JsonMembers& json, RepositoryConfig* config) {
  std::string id;
  const bool sound = json.Read("id", &config->id) && FromHexText(config->id, kIdDigits / 2, &id) &&
                     json.Read("chunk_min", &config->chunks.min) &&
                     json.Read("chunk_average", &config->chunks.average) &&
                     json.Read("chunk_max", &config->chunks.max) &&
                     json.Read("segment", &config->chunks.segment) && SoundSizes(config->chunks);
  if (!sound || !json.Has("encryption")) return false;
  if (json.IsNull("encryption")) return true;
  return ReadEncryption(json.Below("encryption"), &config->encryption.emplace());
}

// The text ends with the hash of what stands before it: a changed digit of a size or a key would else go
// unseen.
bool CheckHolds(std::string_view text) {
  const size_t tail = kCheck.size() + 64 + kEnd.size();
  if (text.size() < tail) return false;
  const std::string_view body = text.substr(0, text.size() - tail);
  return text.substr(body.size()) == StrCat(kCheck, Sha256Of(body).Hex(), kEnd);
}

}  // namespace

std::string EncodeRepositoryConfig(const RepositoryConfig& config) {
  JsonWriter json;
  json.BeginObject().Field("format", kFormat).Field("version", kVersion).Field("id", config.id);
  json.Field("chunk_min", config.chunks.min).Field("chunk_average", config.chunks.average);
  json.Field("chunk_max", config.chunks.max).Field("segment", config.chunks.segment).Key("encryption");
  if (config.encryption) {
    WriteEncryption(*config.encryption, &json);
  } else {
    json.Null();
  }
  const std::string body = json.Take();
  return StrCat(body, kCheck, Sha256Of(body).Hex(), kEnd);
}

Result<RepositoryConfig> DecodeRepositoryConfig(std::string_view json, std::string_view location) {
  const std::string what = StrCat("the config of the repository in ", Quoted(location, 500));
  if (!CheckHolds(json)) return Fail(ErrorCode::kCorrupt, StrCat(what, " is damaged"));
  OC_TRY(members, JsonMembers::Parse(json, kFormat, kVersion, what));
  RepositoryConfig config;
  if (!ReadConfig(members, &config)) return Fail(ErrorCode::kCorrupt, StrCat(what, " is damaged"));
  return config;
}

}  // namespace overcap
