// SPDX-License-Identifier: Apache-2.0
#include "snapshot/capture_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace overcap {
namespace {

static_assert(std::endian::native == std::endian::little, "the index is written as it is in memory");

constexpr std::string_view kMagic = "ocindex2";
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kFineSlack = kSecond / 10;
constexpr int64_t kCoarseSlack = 2 * kSecond;

class Writer {
 public:
  template <typename T>
  void Number(T value) {
    static_assert(std::is_integral_v<T>);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void Hash(const Digest& digest) {
    out_.append(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
  }
  void Text(std::string_view text) {
    Number(static_cast<uint32_t>(text.size()));
    out_.append(text);
  }
  std::string& Out() { return out_; }

 private:
  std::string out_;
};

// Reads past the end give zeros and Ok() == false.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  template <typename T>
  T Number() {
    T value{};
    Copy(&value, sizeof value);
    return value;
  }
  Digest Hash() {
    Digest digest;
    Copy(digest.bytes.data(), digest.bytes.size());
    return digest;
  }
  std::string Text() {
    const uint32_t size = Number<uint32_t>();
    if (size > rest_.size()) ok_ = false;
    std::string text(rest_.substr(0, ok_ ? size : 0));
    rest_.remove_prefix(text.size());
    return text;
  }
  size_t Left() const { return rest_.size(); }
  bool Ok() const { return ok_; }

 private:
  void Copy(void* to, size_t size) {
    ok_ = ok_ && size <= rest_.size();
    if (!ok_) return;
    std::memcpy(to, rest_.data(), size);
    rest_.remove_prefix(size);
  }

  std::string_view rest_;
  bool ok_ = true;
};

void WriteEntry(const CodeEntry& entry, const FileStamp& stamp, Writer* writer) {
  writer->Number(static_cast<char>(entry.kind));
  writer->Number(static_cast<char>(entry.content.kind));
  writer->Hash(entry.content.id);
  writer->Number(entry.size);
  writer->Number(stamp.size);
  writer->Number(stamp.mtime_ns);
  writer->Number(stamp.ctime_ns);
  writer->Number(stamp.inode);
  writer->Number(stamp.mode);
  writer->Text(entry.path);
  writer->Text(entry.target);
}

void ReadEntry(Reader* reader, CaptureIndex* index) {
  CodeEntry entry;
  FileStamp stamp;
  entry.kind = static_cast<EntryKind>(reader->Number<char>());
  entry.content.kind = static_cast<FileContent::Kind>(reader->Number<char>());
  entry.content.id = reader->Hash();
  entry.size = reader->Number<int64_t>();
  stamp.size = reader->Number<int64_t>();
  stamp.mtime_ns = reader->Number<int64_t>();
  stamp.ctime_ns = reader->Number<int64_t>();
  stamp.inode = reader->Number<uint64_t>();
  stamp.mode = reader->Number<uint32_t>();
  entry.path = reader->Text();
  entry.target = reader->Text();
  index->entries.push_back(std::move(entry));
  index->stamps.push_back(stamp);
}

}  // namespace

std::string EncodeIndex(const CaptureIndex& index) {
  Writer writer;
  writer.Out().reserve(index.entries.size() * 128);
  writer.Out().append(kMagic);
  writer.Number(index.began_ns);
  writer.Hash(index.tree);
  writer.Text(index.folder);
  writer.Number(static_cast<uint64_t>(index.entries.size()));
  for (size_t i = 0; i < index.entries.size(); ++i) {
    WriteEntry(index.entries[i], index.stamps[i], &writer);
  }
  writer.Hash(Sha256Of(writer.Out()));
  return std::move(writer.Out());
}

std::optional<CaptureIndex> DecodeIndex(std::string_view bytes) {
  constexpr size_t kSum = sizeof(Digest::bytes);
  if (bytes.size() < kMagic.size() + kSum || bytes.substr(0, kMagic.size()) != kMagic) return std::nullopt;
  const std::string_view body = bytes.substr(0, bytes.size() - kSum);
  if (Reader(bytes.substr(body.size())).Hash() != Sha256Of(body)) return std::nullopt;
  Reader reader(body.substr(kMagic.size()));
  CaptureIndex index;
  index.began_ns = reader.Number<int64_t>();
  index.tree = reader.Hash();
  index.folder = reader.Text();
  const uint64_t count = reader.Number<uint64_t>();
  if (count > reader.Left()) return std::nullopt;
  index.entries.reserve(count);
  index.stamps.reserve(count);
  for (uint64_t i = 0; i < count && reader.Ok(); ++i) ReadEntry(&reader, &index);
  if (!reader.Ok() || reader.Left() != 0) return std::nullopt;
  return index;
}

bool RacilyClean(const FileStamp& stamp, int64_t began_ns) {
  const bool coarse = stamp.mtime_ns % kSecond == 0 && stamp.ctime_ns % kSecond == 0;
  const int64_t slack = coarse ? kCoarseSlack : kFineSlack;
  return std::max(stamp.mtime_ns, stamp.ctime_ns) >= began_ns - slack;
}

}  // namespace overcap
