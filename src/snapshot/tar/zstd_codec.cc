// SPDX-License-Identifier: Apache-2.0
#include <zstd.h>

#include "base/text.h"
#include "snapshot/tar/codecs.h"

namespace overcap {
namespace {

constexpr int kLevel = 3;
constexpr int kWindowLogMost = 27;  // 128 MiB: what a zstd of default settings decodes

class ZstdSink : public ByteSink {
 public:
  ZstdSink(ByteSink& next, ZSTD_CCtx* context)
      : next_(next), context_(context), out_(ZSTD_CStreamOutSize(), '\0') {}
  ~ZstdSink() override { ZSTD_freeCCtx(context_); }
  Result<void> Write(std::string_view bytes) override { return Compress(bytes, ZSTD_e_continue); }
  Result<void> Finish() override { return Compress({}, ZSTD_e_end); }

 private:
  Result<void> Compress(std::string_view bytes, ZSTD_EndDirective directive) {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    while (true) {
      ZSTD_outBuffer out{out_.data(), out_.size(), 0};
      const size_t left = ZSTD_compressStream2(context_, &out, &in, directive);
      if (ZSTD_isError(left)) return Fail(ErrorCode::kInternal, StrCat("zstd: ", ZSTD_getErrorName(left)));
      if (out.pos > 0) OC_TRY_VOID(next_.Write({out_.data(), out.pos}));
      const bool done = directive == ZSTD_e_end ? left == 0 : in.pos == in.size;
      if (done) return {};
    }
  }

  ByteSink& next_;
  ZSTD_CCtx* context_;
  std::string out_;
};

class ZstdSource : public ByteSource {
 public:
  ZstdSource(ByteSource& source, ZSTD_DCtx* context, std::string name)
      : input_(source), context_(context), name_(std::move(name)) {}
  ~ZstdSource() override { ZSTD_freeDCtx(context_); }

  Result<size_t> Read(char* buffer, size_t size) override {
    ZSTD_outBuffer out{buffer, size, 0};
    while (out.pos == 0) {
      OC_TRY(more, input_.Refill());
      // A full output may have left something inside; then no input is needed.
      if (!more && !flush_) {
        if (in_frame_) return Fail(ErrorCode::kCorrupt, StrCat("'", name_, "' is cut off"));
        return size_t{0};
      }
      ZSTD_inBuffer in{input_.data(), input_.size(), 0};
      const size_t left = ZSTD_decompressStream(context_, &out, &in);
      if (ZSTD_isError(left)) {
        return Fail(ErrorCode::kCorrupt, StrCat("'", name_, "' is damaged: ", ZSTD_getErrorName(left)));
      }
      input_.Use(in.pos);
      in_frame_ = left != 0;
      flush_ = in_frame_ && out.pos == out.size;
    }
    return out.pos;
  }

 private:
  CodecInput input_;
  ZSTD_DCtx* context_;
  std::string name_;
  bool in_frame_ = false, flush_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteSink>> MakeZstdSink(ByteSink& next, int threads) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (context == nullptr) return Fail(ErrorCode::kUnavailable, "zstd: no memory");
  ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
  // A library without threads refuses this, and compresses in the caller's.
  if (threads > 1) ZSTD_CCtx_setParameter(context, ZSTD_c_nbWorkers, threads);
  return std::unique_ptr<ByteSink>(new ZstdSink(next, context));
}

Result<std::unique_ptr<ByteSource>> MakeZstdSource(ByteSource& source, const std::string& name) {
  ZSTD_DCtx* context = ZSTD_createDCtx();
  if (context == nullptr) return Fail(ErrorCode::kUnavailable, "zstd: no memory");
  ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax, kWindowLogMost);
  return std::unique_ptr<ByteSource>(new ZstdSource(source, context, name));
}

}  // namespace overcap
