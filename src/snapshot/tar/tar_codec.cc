// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/tar_codec.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "snapshot/tar/codecs.h"

namespace overcap {
namespace {

struct Ending {
  std::string_view text;
  TarCodec codec;
};
constexpr std::array kEndings = {Ending{".tar", TarCodec::kPlain},    Ending{".tar.gz", TarCodec::kGzip},
                                 Ending{".tgz", TarCodec::kGzip},     Ending{".tar.lz4", TarCodec::kLz4},
                                 Ending{".tar.zst", TarCodec::kZstd}, Ending{".tar.zstd", TarCodec::kZstd}};

// Kinds of files that people take for tars, by how they begin.
struct Foreign {
  std::string_view magic, name;
};
constexpr std::array kForeign = {Foreign{"\xfd"
                                         "7zXZ",
                                         "xz"},
                                 Foreign{"BZh", "bzip2"}, Foreign{"PK\x03\x04", "zip"},
                                 Foreign{"7z\xbc\xaf", "7-zip"}};

constexpr size_t kMagic = 6;

bool IsLz4(std::string_view head) {
  return head.starts_with("\x04\x22\x4d\x18");
}
bool IsZstd(std::string_view head) {
  if (head.starts_with("\x28\xb5\x2f\xfd")) return true;
  // A skippable frame: pzstd and others begin with one.
  return head.size() >= 4 && (head[0] & 0xf0) == 0x50 && head.substr(1, 3) == "\x2a\x4d\x18";
}

// The source with the bytes in front that were looked at.
class PrefixedSource : public ByteSource {
 public:
  PrefixedSource(std::string head, ByteSource& rest) : head_(std::move(head)), rest_(rest) {}
  Result<size_t> Read(char* buffer, size_t size) override {
    if (used_ == head_.size()) return rest_.Read(buffer, size);
    const size_t count = std::min(size, head_.size() - used_);
    std::copy_n(head_.data() + used_, count, buffer);
    used_ += count;
    return count;
  }

 private:
  std::string head_;
  size_t used_ = 0;
  ByteSource& rest_;
};

// Owns what the one that decompresses reads from.
class StackedSource : public ByteSource {
 public:
  StackedSource(std::unique_ptr<ByteSource> below, std::unique_ptr<ByteSource> top)
      : below_(std::move(below)), top_(std::move(top)) {}
  Result<size_t> Read(char* buffer, size_t size) override { return top_->Read(buffer, size); }

 private:
  std::unique_ptr<ByteSource> below_, top_;
};

class PlainSink : public ByteSink {
 public:
  explicit PlainSink(ByteSink& next) : next_(next) {}
  Result<void> Write(std::string_view bytes) override { return next_.Write(bytes); }
  Result<void> Finish() override { return {}; }

 private:
  ByteSink& next_;
};

Result<std::string> Head(ByteSource& source) {
  std::string head(kMagic, '\0');
  size_t have = 0;
  while (have < kMagic) {
    OC_TRY(count, source.Read(head.data() + have, kMagic - have));
    if (count == 0) break;
    have += count;
  }
  head.resize(have);
  return head;
}

}  // namespace

std::optional<TarCodec> TarCodecOfName(std::string_view name) {
  for (const Ending& ending : kEndings) {
    if (name.ends_with(ending.text)) return ending.codec;
  }
  return std::nullopt;
}

std::optional<TarCodec> TarCodecOfWord(std::string_view word) {
  if (word == "plain") return TarCodec::kPlain;
  if (word == "gzip") return TarCodec::kGzip;
  if (word == "lz4") return TarCodec::kLz4;
  if (word == "zstd") return TarCodec::kZstd;
  return std::nullopt;
}

Result<std::unique_ptr<ByteSink>> CompressInto(ByteSink& next, TarCodec codec, int threads) {
  switch (codec) {
    case TarCodec::kGzip:
      return MakeGzipSink(next);
    case TarCodec::kLz4:
      return MakeLz4Sink(next);
    case TarCodec::kZstd:
      return MakeZstdSink(next, threads);
    case TarCodec::kPlain:
      break;
  }
  return std::unique_ptr<ByteSink>(new PlainSink(next));
}

Result<std::unique_ptr<ByteSource>> Decompress(ByteSource& source, const std::string& name) {
  OC_TRY(head, Head(source));
  for (const Foreign& foreign : kForeign) {
    if (!head.starts_with(foreign.magic)) continue;
    return Fail(ErrorCode::kUsage,
                StrCat("'", name, "' is compressed with ", foreign.name, ", which is not read here"),
                "plain tar, gzip, lz4 and zstd are; or decompress it first and give '-' for the file");
  }
  const bool gzip = head.starts_with("\x1f\x8b"), lz4 = IsLz4(head), zstd = IsZstd(head);
  std::unique_ptr<ByteSource> below = std::make_unique<PrefixedSource>(std::move(head), source);
  if (!gzip && !lz4 && !zstd) return below;
  Result<std::unique_ptr<ByteSource>> top = gzip  ? MakeGzipSource(*below, name)
                                            : lz4 ? MakeLz4Source(*below, name)
                                                  : MakeZstdSource(*below, name);
  if (!top) return top;
  return std::unique_ptr<ByteSource>(new StackedSource(std::move(below), std::move(*top)));
}

}  // namespace overcap
