// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <lz4frame.h>

#include "base/text.h"
#include "snapshot/tar/codecs.h"

namespace overcap {
namespace {

constexpr size_t kPiece = 1 << 20;

LZ4F_preferences_t Preferences() {
  LZ4F_preferences_t preferences = LZ4F_INIT_PREFERENCES;
  preferences.frameInfo.blockSizeID = LZ4F_max1MB;
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  return preferences;
}

class Lz4Sink : public ByteSink {
 public:
  Lz4Sink(ByteSink& next, LZ4F_cctx* context)
      : next_(next),
        context_(context),
        preferences_(Preferences()),
        out_(LZ4F_compressBound(kPiece, &preferences_) + LZ4F_HEADER_SIZE_MAX, '\0') {}
  ~Lz4Sink() override { LZ4F_freeCompressionContext(context_); }

  Result<void> Write(std::string_view bytes) override {
    OC_TRY_VOID(Begin());
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, kPiece);
      OC_TRY_VOID(
          Send(LZ4F_compressUpdate(context_, out_.data(), out_.size(), piece.data(), piece.size(), nullptr)));
      bytes.remove_prefix(piece.size());
    }
    return {};
  }
  Result<void> Finish() override {
    OC_TRY_VOID(Begin());
    return Send(LZ4F_compressEnd(context_, out_.data(), out_.size(), nullptr));
  }

 private:
  Result<void> Begin() {
    if (begun_) return {};
    begun_ = true;
    return Send(LZ4F_compressBegin(context_, out_.data(), out_.size(), &preferences_));
  }
  Result<void> Send(size_t count) {
    if (LZ4F_isError(count)) return Fail(ErrorCode::kInternal, StrCat("lz4: ", LZ4F_getErrorName(count)));
    return count == 0 ? Result<void>() : next_.Write({out_.data(), count});
  }

  ByteSink& next_;
  LZ4F_cctx* context_;
  const LZ4F_preferences_t preferences_;
  std::string out_;
  bool begun_ = false;
};

class Lz4Source : public ByteSource {
 public:
  Lz4Source(ByteSource& source, LZ4F_dctx* context, std::string name)
      : input_(source), context_(context), name_(std::move(name)) {}
  ~Lz4Source() override { LZ4F_freeDecompressionContext(context_); }

  Result<size_t> Read(char* buffer, size_t size) override {
    while (true) {
      OC_TRY(more, input_.Refill());
      size_t out = size, in = input_.size();
      const size_t hint = LZ4F_decompress(context_, buffer, &out, input_.data(), &in, nullptr);
      if (LZ4F_isError(hint)) {
        return Fail(ErrorCode::kCorrupt, StrCat("'", name_, "' is damaged: ", LZ4F_getErrorName(hint)));
      }
      input_.Use(in);
      if (in > 0 || out > 0) in_frame_ = hint != 0;
      if (out > 0) return out;
      if (more) continue;
      if (in_frame_) return Fail(ErrorCode::kCorrupt, StrCat("'", name_, "' is cut off"));
      return size_t{0};
    }
  }

 private:
  CodecInput input_;
  LZ4F_dctx* context_;
  std::string name_;
  bool in_frame_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSink>> MakeLz4Sink(ByteSink& next) {
  LZ4F_cctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createCompressionContext(&context, LZ4F_VERSION))) {
    return Fail(ErrorCode::kUnavailable, "lz4: no memory");
  }
  return std::unique_ptr<ByteSink>(new Lz4Sink(next, context));
}

Result<std::unique_ptr<ByteSource>> MakeLz4Source(ByteSource& source, const std::string& name) {
  LZ4F_dctx* context = nullptr;
  if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION))) {
    return Fail(ErrorCode::kUnavailable, "lz4: no memory");
  }
  return std::unique_ptr<ByteSource>(new Lz4Source(source, context, name));
}

}  // namespace overcap
