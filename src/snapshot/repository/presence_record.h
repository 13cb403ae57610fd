// SPDX-License-Identifier: Apache-2.0
// What stands in writers/ and condemned/ (docs/formats/snapshot.md, "Writers and prune"). Pure; parsers take
// any bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/sha256.h"

namespace overcap {

// Who a process is, so that another on the same machine can tell that it is gone.
struct ProcessMark {
  std::string host;
  int64_t pid = 0;
  std::string boot;       // the kernel's boot id; "": not known
  std::string pid_space;  // the pid namespace
  int64_t started = 0;    // ticks after boot

  bool operator==(const ProcessMark&) const = default;
};

struct WriterRecord {
  ProcessMark process;
  int64_t began_us = 0;
  int64_t beat = 0;
  bool prune = false;              // nobody waits for a prune: it looks again before it removes
  std::vector<std::string> knows;  // ids of condemned/ objects whose packs it does not rely on

  bool operator==(const WriterRecord&) const = default;
};

struct CondemnedRecord {
  std::vector<Digest> packs;
  int64_t began_us = 0;

  bool operator==(const CondemnedRecord&) const = default;
};

std::string EncodeWriterRecord(const WriterRecord& record);
std::string EncodeCondemnedRecord(const CondemnedRecord& record);
// `key` is for messages. kCorrupt for anything that is none.
Result<WriterRecord> DecodeWriterRecord(std::string_view bytes, std::string_view key);
Result<CondemnedRecord> DecodeCondemnedRecord(std::string_view bytes, std::string_view key);

// "node07, pid 4711".
std::string DescribeWriter(const WriterRecord& record);

}  // namespace overcap
