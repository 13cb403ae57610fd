// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "snapshot/tar/pax_records.h"
#include "snapshot/tar/tar_header.h"
#include "snapshot/tar/tar_sparse.h"

namespace overcap {
namespace {

constexpr size_t kBuffer = 256 << 10;
constexpr int64_t kPaxMost = 16 << 20, kLongNameMost = 1 << 20;

int64_t PaddingOf(int64_t size) {
  return (static_cast<int64_t>(kTarBlock) - size % static_cast<int64_t>(kTarBlock)) %
         static_cast<int64_t>(kTarBlock);
}

bool IsExtension(char type) {
  return type == 'x' || type == 'X' || type == 'g' || type == 'L' || type == 'K' || type == 'V';
}

// GNU's own headers use the place of the prefix for other things.
bool HasPrefix(std::string_view block) {
  return kTarMagic.Of(block).substr(0, 6) == std::string_view("ustar\0", 6);
}

std::string HeaderName(std::string_view block) {
  const std::string_view name = TarText(kTarName.Of(block));
  const std::string_view prefix = HasPrefix(block) ? TarText(kTarPrefix.Of(block)) : std::string_view();
  return prefix.empty() ? std::string(name) : StrCat(prefix, "/", name);
}

std::string_view SpecialName(char type) {
  switch (type) {
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a pipe";
    case 'M':
      return "the rest of a file that begins in another tar";
    default:
      return {};
  }
}

// nullopt: no type that is known.
std::optional<SnapshotEntryType> TypeOf(char type, std::string_view path) {
  switch (type) {
    case '\0':
    case '0':
    case '7':
      // Before ustar, a folder was a file whose name ends so.
      return path.ends_with('/') ? SnapshotEntryType::kFolder : SnapshotEntryType::kFile;
    case 'S':
      return SnapshotEntryType::kFile;
    case '1':
      return SnapshotEntryType::kHardLink;
    case '2':
      return SnapshotEntryType::kSymlink;
    case '5':
    case 'D':
      return SnapshotEntryType::kFolder;
    default:
      return std::nullopt;
  }
}

}  // namespace

TarReader::TarReader(ByteSource& source, std::string name)
    : source_(source), name_(std::move(name)), buffer_(kBuffer, '\0') {}

tl::unexpected<Error> TarReader::Damaged(std::string_view what) const {
  const std::string where =
      last_path_.empty() ? "" : StrCat(" (after the entry ", Quoted(last_path_, 200), ")");
  return Fail(ErrorCode::kCorrupt, StrCat("tar '", name_, "' ", what, where));
}

Result<void> TarReader::Fill(size_t least) {
  if (end_ - begin_ >= least || source_ended_) return {};
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  while (end_ < least && !source_ended_) {
    OC_TRY(count, source_.Read(buffer_.data() + end_, buffer_.size() - end_));
    source_ended_ = count == 0;
    end_ += count;
  }
  return {};
}

// A whole block, or "" at the end of the source.
Result<std::string_view> TarReader::Block() {
  OC_TRY_VOID(Fill(kTarBlock));
  if (begin_ == end_) return std::string_view();
  if (end_ - begin_ < kTarBlock) return Damaged("is cut off");
  const std::string_view block(buffer_.data() + begin_, kTarBlock);
  begin_ += kTarBlock;
  return block;
}

Result<void> TarReader::Skip(int64_t size) {
  while (size > 0) {
    OC_TRY_VOID(Fill(1));
    if (begin_ == end_) return Damaged("is cut off");
    const int64_t step = std::min<int64_t>(size, static_cast<int64_t>(end_ - begin_));
    begin_ += static_cast<size_t>(step);
    size -= step;
  }
  return {};
}

// The data of an extension header, whole; memory grows only with what really comes.
Result<std::string> TarReader::Body(int64_t size, std::string_view what) {
  std::string body;
  int64_t left = size;
  while (left > 0) {
    OC_TRY_VOID(Fill(1));
    if (begin_ == end_) return Damaged(StrCat("is cut off in ", what));
    const size_t step = std::min(static_cast<size_t>(left), end_ - begin_);
    body.append(buffer_, begin_, step);
    begin_ += step;
    left -= static_cast<int64_t>(step);
  }
  OC_TRY_VOID(Skip(PaddingOf(size)));
  return body;
}

Result<std::string_view> TarReader::Data() {
  if (data_left_ == 0) return std::string_view();
  OC_TRY_VOID(Fill(1));
  if (begin_ == end_) return Damaged("is cut off");
  const size_t step = static_cast<size_t>(std::min<int64_t>(data_left_, static_cast<int64_t>(end_ - begin_)));
  const std::string_view piece(buffer_.data() + begin_, step);
  begin_ += step;
  data_left_ -= static_cast<int64_t>(step);
  return piece;
}

Result<bool> TarReader::Next(TarItem* item) {
  if (ended_) return false;
  // Not one sum: both may be as large as numbers get.
  OC_TRY_VOID(Skip(data_left_));
  OC_TRY_VOID(Skip(padding_));
  data_left_ = padding_ = 0;
  while (true) {
    OC_TRY(done, Header(item));
    if (ended_) return false;
    if (done) return true;
  }
}

// False: it was an extension of the next one, or the end.
Result<bool> TarReader::Header(TarItem* item) {
  OC_TRY(block, Block());
  if (block.empty()) {
    return Damaged(last_path_.empty() ? "is empty" : "is cut off: it has no end mark");
  }
  if (TarBlockIsZero(block)) {
    OC_TRY_VOID(End());
    return false;
  }
  if (!TarChecksumFits(block))
    return Damaged(last_path_.empty() ? "is no tar file" : "is damaged: a header is wrong");
  const std::string header(block);  // the buffer moves
  const char type = header[kTarType.offset];
  const auto told = ParseTarNumber(kTarSize.Of(header));
  if (!told || *told < 0) return Damaged("is damaged: a header has no size");
  if (IsExtension(type)) return TakeExtension(type, *told);
  OC_TRY_VOID(Describe(header, type, *told, item));
  local_ = {};
  has_local_ = false;
  local_bytes_ = 0;
  long_name_.clear();
  long_link_.clear();
  last_path_ = item->entry.path;
  return true;
}

Result<bool> TarReader::TakeExtension(char type, int64_t size) {
  const bool pax = type == 'x' || type == 'X' || type == 'g';
  if (size > (pax ? kPaxMost : kLongNameMost)) return Damaged("is damaged: a header is far too long");
  OC_TRY(body, Body(size, "a header"));
  if (type == 'V') return false;  // only the tape's name
  if (type == 'L' || type == 'K') {
    (type == 'L' ? long_name_ : long_link_) = std::string(TarText(body));
    return false;
  }
  if (type == 'g') {
    const auto applied = ApplyPaxRecords(body, &global_);
    // Attributes and maps are of one file: for all they mean nothing, and would only grow.
    global_.xattrs.clear();
    global_.sparse_runs.clear();
    return applied ? Result<bool>(false) : Damaged(StrCat("is damaged: ", applied.error().message));
  }
  if (!has_local_) local_ = global_;
  has_local_ = true;
  local_bytes_ += size;
  if (local_bytes_ > kPaxMost) return Damaged("is damaged: a header is far too long");
  const auto applied = ApplyPaxRecords(body, &local_);
  return applied ? Result<bool>(false) : Damaged(StrCat("is damaged: ", applied.error().message));
}

Result<void> TarReader::Describe(std::string_view block, char type, int64_t size, TarItem* item) {
  const PaxOverrides& pax = has_local_ ? local_ : global_;
  *item = {};
  SnapshotEntry& entry = item->entry;
  entry.path = pax.sparse_name ? *pax.sparse_name
               : pax.path      ? *pax.path
                               : (long_name_.empty() ? HeaderName(block) : long_name_);
  if (entry.path.size() > static_cast<size_t>(kLongNameMost))
    return Damaged("is damaged: a name is far too long");
  item->special = std::string(SpecialName(type));
  const auto kind = TypeOf(type, entry.path);
  if (!kind && item->special.empty()) {
    return Damaged(StrCat("has an entry ", Quoted(entry.path, 200), " of a kind that is not known"));
  }
  entry.type = kind.value_or(SnapshotEntryType::kFile);
  const auto mode = ParseTarNumber(kTarMode.Of(block)), mtime = ParseTarNumber(kTarTime.Of(block));
  const auto uid = pax.uid ? pax.uid : ParseTarNumber(kTarUid.Of(block));
  const auto gid = pax.gid ? pax.gid : ParseTarNumber(kTarGid.Of(block));
  const auto is_id = [](const auto& id) {
    return id && *id >= 0 && *id <= std::numeric_limits<uint32_t>::max();
  };
  if (!mode || (!mtime && !pax.mtime_ns) || !is_id(uid) || !is_id(gid)) {
    return Damaged(StrCat("is damaged: the header of ", Quoted(entry.path, 200), " has a bad number"));
  }
  entry.mode = static_cast<uint32_t>(*mode & 07777);
  if (entry.type == SnapshotEntryType::kSymlink) entry.mode = 0777;
  entry.uid = static_cast<uint32_t>(*uid);
  entry.gid = static_cast<uint32_t>(*gid);
  entry.mtime_ns = pax.mtime_ns ? *pax.mtime_ns : TarSecondsToNs(*mtime);
  entry.target = pax.link             ? *pax.link
                 : long_link_.empty() ? std::string(TarText(kTarLink.Of(block)))
                                      : long_link_;
  entry.xattrs = XattrsOf(pax);
  const bool link = entry.type == SnapshotEntryType::kHardLink || entry.type == SnapshotEntryType::kSymlink;
  if (!link) entry.target.clear();
  // Whatever a link's header says of a size, no data follows it (GNU tar).
  data_left_ = link ? 0 : pax.size.value_or(size);
  padding_ = PaddingOf(data_left_);
  entry.size = entry.type == SnapshotEntryType::kFile ? data_left_ : 0;
  if (type == 'S') return ReadOldSparse(block, item);
  if (entry.type == SnapshotEntryType::kFile && pax.Sparse()) return ReadSparse(item);
  return {};
}

Result<void> TarReader::ReadOldSparse(std::string_view block, TarItem* item) {
  auto header = ParseOldSparseHeader(block);
  std::optional<bool> more = header ? std::optional(header->more) : std::nullopt;
  while (more && *more) {
    OC_TRY(next, Block());
    if (next.empty()) return Damaged("is cut off");
    more = ParseOldSparseBlock(next, &header->runs);
  }
  if (!more || !NormaliseRuns(header->real_size, data_left_, &header->runs)) {
    return Damaged(
        StrCat("is damaged: the map of the sparse file ", Quoted(item->entry.path, 200), " is wrong"));
  }
  item->sparse = true;
  item->entry.size = header->real_size;
  item->runs = std::move(header->runs);
  return {};
}

Result<void> TarReader::ReadSparse(TarItem* item) {
  const PaxOverrides& pax = has_local_ ? local_ : global_;
  bool sound = pax.sparse_size.has_value();
  if (pax.SparseMapInData()) {
    SparseMapParser map;
    std::optional<bool> complete = false;
    while (complete && !*complete) {
      if (data_left_ < static_cast<int64_t>(kTarBlock)) {
        complete = std::nullopt;
        break;
      }
      OC_TRY(block, Block());
      if (block.empty()) return Damaged("is cut off");
      data_left_ -= static_cast<int64_t>(kTarBlock);
      complete = map.Feed(block);
    }
    sound = sound && complete.has_value();
    item->runs = std::move(map.runs());
  } else {
    item->runs = pax.sparse_runs;
  }
  if (!sound || !NormaliseRuns(*pax.sparse_size, data_left_, &item->runs)) {
    return Damaged(
        StrCat("is damaged: the map of the sparse file ", Quoted(item->entry.path, 200), " is wrong"));
  }
  item->sparse = true;
  item->entry.size = *pax.sparse_size;
  return {};
}

// One empty block has come. What follows is filling, and nothing else.
Result<void> TarReader::End() {
  while (true) {
    OC_TRY_VOID(Fill(1));
    if (begin_ == end_) break;
    if (!TarBlockIsZero({buffer_.data() + begin_, end_ - begin_})) {
      return Damaged("goes on after its end: it is damaged, or several were put together");
    }
    begin_ = end_;
  }
  ended_ = true;
  return {};
}

}  // namespace overcap
