// SPDX-License-Identifier: Apache-2.0
// What pax records say about the entries behind them. Pure but for the names of ACLs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/tar/tar_item.h"

namespace overcap {

struct PaxOverrides {
  std::optional<std::string> path, link;
  std::optional<int64_t> size, uid, gid, mtime_ns;
  std::vector<ExtendedAttribute> xattrs;
  std::optional<std::string> acl_access, acl_default;  // text

  // GNU.sparse.*
  std::optional<int64_t> sparse_major, sparse_minor, sparse_size;
  std::optional<std::string> sparse_name;
  std::vector<TarRun> sparse_runs;
  bool has_runs = false;

  bool SparseMapInData() const { return sparse_major.value_or(0) == 1; }
  bool Sparse() const { return SparseMapInData() || (sparse_size && has_runs); }
};

// Later records count; a record without a value takes back what was said. The error is one line without the
// name of the tar.
Result<void> ApplyPaxRecords(std::string_view bytes, PaxOverrides* overrides);

// Attributes and ACLs of an entry, by name, the last of each.
std::vector<ExtendedAttribute> XattrsOf(const PaxOverrides& overrides);

}  // namespace overcap
