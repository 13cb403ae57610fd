// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <zlib.h>

#include "base/text.h"
#include "snapshot/tar/codecs.h"

namespace overcap {
namespace {

constexpr int kGzipWindow = 15 + 16;  // a gzip head and tail
constexpr int kLevel = 6;

class GzipSink : public ByteSink {
 public:
  explicit GzipSink(ByteSink& next) : next_(next), out_(256 << 10, '\0') {}
  ~GzipSink() override { deflateEnd(&stream_); }
  bool Start() {
    return deflateInit2(&stream_, kLevel, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK;
  }
  Result<void> Write(std::string_view bytes) override {
    constexpr size_t kPiece = 1 << 20;
    for (; !bytes.empty(); bytes.remove_prefix(std::min(kPiece, bytes.size()))) {
      OC_TRY_VOID(Deflate(bytes.substr(0, kPiece), Z_NO_FLUSH));
    }
    return {};
  }
  Result<void> Finish() override { return Deflate({}, Z_FINISH); }

 private:
  Result<void> Deflate(std::string_view bytes, int flush) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    int status = Z_OK;
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = static_cast<uInt>(out_.size());
      status = deflate(&stream_, flush);
      if (status == Z_STREAM_ERROR) return Fail(ErrorCode::kInternal, "gzip: cannot compress");
      OC_TRY_VOID(next_.Write({out_.data(), out_.size() - stream_.avail_out}));
    } while (stream_.avail_out == 0 && status != Z_STREAM_END);
    return {};
  }

  ByteSink& next_;
  std::string out_;
  z_stream stream_{};
};

class GzipSource : public ByteSource {
 public:
  GzipSource(ByteSource& source, std::string name) : input_(source), name_(std::move(name)) {}
  ~GzipSource() override { inflateEnd(&stream_); }
  bool Start() { return inflateInit2(&stream_, kGzipWindow) == Z_OK; }

  Result<size_t> Read(char* buffer, size_t size) override {
    while (true) {
      OC_TRY(more, input_.Refill());
      if (!more) {
        if (in_member_) return Fail(ErrorCode::kCorrupt, StrCat("'", name_, "' is cut off"));
        return size_t{0};
      }
      if (!in_member_) inflateReset(&stream_);
      in_member_ = true;
      const auto room = static_cast<uInt>(std::min<size_t>(size, 1 << 30));
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
      stream_.avail_in = static_cast<uInt>(input_.size());
      stream_.next_out = reinterpret_cast<Bytef*>(buffer);
      stream_.avail_out = room;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      input_.Use(input_.size() - stream_.avail_in);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        return Fail(ErrorCode::kCorrupt,
                    StrCat("'", name_, "' is damaged: ", stream_.msg ? stream_.msg : "not gzip"));
      }
      if (status == Z_STREAM_END) in_member_ = false;
      if (stream_.avail_out < room) return size_t{room} - stream_.avail_out;
    }
  }

 private:
  CodecInput input_;
  std::string name_;
  z_stream stream_{};
  bool in_member_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSink>> MakeGzipSink(ByteSink& next) {
  auto sink = std::make_unique<GzipSink>(next);
  if (!sink->Start()) return Fail(ErrorCode::kUnavailable, "gzip: no memory");
  return sink;
}

Result<std::unique_ptr<ByteSource>> MakeGzipSource(ByteSource& source, const std::string& name) {
  auto made = std::make_unique<GzipSource>(source, name);
  if (!made->Start()) return Fail(ErrorCode::kUnavailable, "gzip: no memory");
  return made;
}

}  // namespace overcap
