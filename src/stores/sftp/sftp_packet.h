// SPDX-License-Identifier: Apache-2.0
// What SFTP (version 3, draft-ietf-secsh-filexfer-02) says, byte by byte. Pure; no length is believed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace overcap {

enum class SftpType : uint8_t {
  kInit = 1,
  kVersion = 2,
  kOpen = 3,
  kClose = 4,
  kRead = 5,
  kWrite = 6,
  kLstat = 7,
  kFstat = 8,
  kSetstat = 9,
  kOpendir = 11,
  kReaddir = 12,
  kRemove = 13,
  kMkdir = 14,
  kRealpath = 16,
  kStat = 17,
  kRename = 18,
  kStatus = 101,
  kHandle = 102,
  kData = 103,
  kName = 104,
  kAttrs = 105,
  kExtended = 200,
  kExtendedReply = 201,
};

enum class SftpCode : uint32_t {
  kOk = 0,
  kEof = 1,
  kNoSuchFile = 2,
  kPermissionDenied = 3,
  kFailure = 4,
  kBadMessage = 5,
  kNoConnection = 6,
  kConnectionLost = 7,
  kUnsupported = 8,
};

constexpr uint32_t kSftpRead = 1, kSftpWrite = 2, kSftpCreate = 8, kSftpTruncate = 16, kSftpExclusive = 32;

// A server that says that a packet is longer is none.
constexpr uint32_t kMostSftpPacket = 1 << 20;

struct SftpAttributes {
  std::optional<int64_t> size;
  std::optional<uint32_t> mode;      // with the type, as st_mode
  std::optional<uint32_t> modified;  // seconds
};

struct SftpEntry {
  std::string name;
  SftpAttributes attributes;
};

struct SftpStatus {
  SftpCode code = SftpCode::kFailure;
  std::string message;
};

struct SftpVersion {
  uint32_t version = 0;
  std::map<std::string, std::string> extensions;
};

struct SftpLimits {
  uint64_t packet = 0, read = 0, write = 0, handles = 0;
};

// Builds the body of a packet, what follows the id.
class SftpBody {
 public:
  SftpBody& U32(uint32_t value);
  SftpBody& U64(uint64_t value);
  SftpBody& Text(std::string_view bytes);
  SftpBody& NoAttributes() { return U32(0); }
  SftpBody& Mode(uint32_t mode) { return U32(4).U32(mode); }
  SftpBody& Times(uint32_t accessed, uint32_t modified) { return U32(8).U32(accessed).U32(modified); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// length, type, id: what stands before the body of `body_size` bytes.
std::string SftpHead(SftpType type, uint32_t id, size_t body_size);
std::string SftpInit();

// Bodies of replies, without the id. nullopt: the server speaks something else.
std::optional<SftpStatus> ParseSftpStatus(std::string_view body);
std::optional<std::string> ParseSftpText(std::string_view body);  // a handle, or data
std::optional<SftpAttributes> ParseSftpAttributes(std::string_view body);
std::optional<std::vector<SftpEntry>> ParseSftpNames(std::string_view body);
std::optional<SftpVersion> ParseSftpVersion(std::string_view body);
std::optional<SftpLimits> ParseSftpLimits(std::string_view body);

// What a stream of bytes holds so far.
struct SftpFrame {
  SftpType type = SftpType::kStatus;
  std::string_view body;  // with the id
  size_t size = 0;        // of the whole packet
};
enum class SftpFraming { kWhole, kMore, kBroken };
SftpFraming TakeSftpFrame(std::string_view bytes, SftpFrame* frame);
uint32_t SftpNumber(std::string_view bytes);  // the first 4 bytes

}  // namespace overcap
