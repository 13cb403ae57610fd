// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_writer.h"

#include <algorithm>

#include "base/text.h"
#include "snapshot/tar/pax_records.h"
#include "snapshot/tar/posix_acl_text.h"
#include "snapshot/tar/tar_header.h"
#include "snapshot/tar/tar_sparse.h"

namespace overcap {
namespace {

constexpr size_t kRecord = 10'240;  // tars are a multiple of this long

void Pad(size_t unit, std::string* out) {
  out->append((unit - out->size() % unit) % unit, '\0');
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

char TypeFlag(SnapshotEntryType type) {
  switch (type) {
    case SnapshotEntryType::kFolder:
      return '5';
    case SnapshotEntryType::kSymlink:
      return '2';
    case SnapshotEntryType::kHardLink:
      return '1';
    case SnapshotEntryType::kFile:
      break;
  }
  return '0';
}

std::string NameInTar(const SnapshotEntry& entry) {
  if (entry.path.empty()) return "./";
  return entry.type == SnapshotEntryType::kFolder ? entry.path + "/" : entry.path;
}

// The texts that do not fit their fields.
void AddTexts(std::string_view name, const TarItem& item, std::string* pax) {
  const bool long_name = name.size() > kTarName.size && !item.sparse;
  const bool long_link = item.entry.target.size() > kTarLink.size;
  if ((long_name && !IsUtf8(name)) || (long_link && !IsUtf8(item.entry.target)) ||
      (item.sparse && !IsUtf8(name))) {
    AppendPaxRecord("hdrcharset", "BINARY", pax);
  }
  if (long_name) AppendPaxRecord("path", name, pax);
  if (long_link) AppendPaxRecord("linkpath", item.entry.target, pax);
}

void AddNumbers(const SnapshotEntry& entry, int64_t stored, std::string* pax) {
  if (entry.uid > kUstarIdMost) AppendPaxRecord("uid", std::to_string(entry.uid), pax);
  if (entry.gid > kUstarIdMost) AppendPaxRecord("gid", std::to_string(entry.gid), pax);
  if (stored > kUstarSizeMost) AppendPaxRecord("size", std::to_string(stored), pax);
  const int64_t seconds = NsToTarSeconds(entry.mtime_ns);
  if (entry.mtime_ns != TarSecondsToNs(seconds) || seconds < 0 || seconds > kUstarSizeMost) {
    AppendPaxRecord("mtime", FormatPaxTime(entry.mtime_ns), pax);
  }
}

// ACLs also as the text that `tar --acls` looks for.
void AddXattrs(const SnapshotEntry& entry, std::string* pax) {
  for (const ExtendedAttribute& xattr : entry.xattrs) {
    AppendPaxRecord(StrCat("SCHILY.xattr.", xattr.name), xattr.value, pax);
    const bool access = xattr.name == "system.posix_acl_access";
    if (!access && xattr.name != "system.posix_acl_default") continue;
    const auto text = AclXattrToText(xattr.value);
    if (text) AppendPaxRecord(access ? "SCHILY.acl.access" : "SCHILY.acl.default", *text, pax);
  }
}

void AddSparse(const TarItem& item, std::string_view name, std::string* pax) {
  AppendPaxRecord("GNU.sparse.major", "1", pax);
  AppendPaxRecord("GNU.sparse.minor", "0", pax);
  AppendPaxRecord("GNU.sparse.name", name, pax);
  AppendPaxRecord("GNU.sparse.realsize", std::to_string(item.entry.size), pax);
}

// GNU tar takes the end of the last run for the end of the file: a hole there needs a run of no length behind
// it.
std::string SparseMapOf(const TarItem& item) {
  std::vector<TarRun> runs = item.runs;
  if (runs.empty() || runs.back().offset + runs.back().length < item.entry.size)
    runs.push_back({item.entry.size, 0});
  return EncodeSparseMap(runs);
}

// A name for those who do not know what the pax record says.
std::string ShortName(std::string_view folder, std::string_view path) {
  const size_t slash = path.find_last_of('/', path.size() >= 2 ? path.size() - 2 : 0);
  const std::string_view last = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return StrCat(folder, last).substr(0, kTarName.size);
}

void AppendPaxHeader(std::string_view path, const std::string& pax, std::string* out) {
  const std::string name = ShortName("PaxHeaders/", path);
  AppendUstarHeader(
      {.name = name, .link = {}, .mode = 0644, .size = static_cast<int64_t>(pax.size()), .type = 'x'}, out);
  out->append(pax);
  Pad(kTarBlock, out);
}

}  // namespace

Result<void> TarWriter::Close() {
  if (left_ != 0) return Fail(ErrorCode::kInternal, "an entry of a tar has less data than it should have");
  return {};
}

Result<void> TarWriter::Begin(const TarItem& item) {
  OC_TRY_VOID(Close());
  const SnapshotEntry& entry = item.entry;
  const std::string name = NameInTar(entry), map = item.sparse ? SparseMapOf(item) : "";
  int64_t stored = entry.type == SnapshotEntryType::kFile ? entry.size : 0;
  if (item.sparse) {
    stored = static_cast<int64_t>(map.size());
    for (const TarRun& run : item.runs) stored += run.length;
  }
  std::string pax;
  AddTexts(name, item, &pax);
  AddNumbers(entry, stored, &pax);
  AddXattrs(entry, &pax);
  if (item.sparse) AddSparse(item, name, &pax);
  scratch_.assign(static_cast<size_t>(padding_), '\0');
  const size_t begin = scratch_.size();
  std::string head;
  if (!pax.empty()) AppendPaxHeader(name, pax, &head);
  const std::string sparse_name = item.sparse ? ShortName("GNUSparseFile.0/", name) : "";
  AppendUstarHeader({.name = item.sparse ? std::string_view(sparse_name) : std::string_view(name),
                     .link = entry.target,
                     .mode = entry.mode,
                     .uid = entry.uid,
                     .gid = entry.gid,
                     .size = stored,
                     .mtime = NsToTarSeconds(entry.mtime_ns),
                     .type = TypeFlag(entry.type)},
                    &head);
  head.append(map);
  scratch_.append(head);
  left_ = stored - static_cast<int64_t>(map.size());
  padding_ = (static_cast<int64_t>(kTarBlock) - stored % static_cast<int64_t>(kTarBlock)) %
             static_cast<int64_t>(kTarBlock);
  written_ +=
      static_cast<int64_t>(scratch_.size() - begin) + stored - static_cast<int64_t>(map.size()) + padding_;
  return sink_.Write(scratch_);
}

Result<void> TarWriter::Data(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > left_) {
    return Fail(ErrorCode::kInternal, "an entry of a tar has more data than it should have");
  }
  left_ -= static_cast<int64_t>(bytes.size());
  return sink_.Write(bytes);
}

Result<void> TarWriter::Finish() {
  OC_TRY_VOID(Close());
  const auto end =
      static_cast<size_t>((written_ + 2 * static_cast<int64_t>(kTarBlock)) % static_cast<int64_t>(kRecord));
  scratch_.assign(static_cast<size_t>(padding_) + 2 * kTarBlock + (kRecord - end) % kRecord, '\0');
  padding_ = 0;
  return sink_.Write(scratch_);
}

}  // namespace overcap
