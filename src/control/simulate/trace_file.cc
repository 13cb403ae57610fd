// SPDX-License-Identifier: Apache-2.0
#include "control/simulate/trace_file.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include "base/text.h"
#include "sys/fd.h"

namespace overcap {
namespace {

constexpr size_t kMostBytes = size_t{4} << 30;

Result<std::string> ReadAll(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return Fail(ErrnoError(errno, StrCat("cannot read trace '", path, "'")));
  std::string text;
  size_t filled = 0;
  for (;;) {
    text.resize(filled + (size_t{1} << 20));
    const ssize_t got = read(file.Get(), text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Fail(ErrnoError(errno, StrCat("cannot read trace '", path, "'")));
    filled += static_cast<size_t>(got);
    if (got == 0) break;
    if (filled > kMostBytes) return Fail(ErrorCode::kUsage, StrCat("trace '", path, "' has more than 4 GiB"));
  }
  text.resize(filled);
  return text;
}

}  // namespace

Result<std::string> Gunzip(std::string_view packed, size_t most) {
  z_stream stream = {};
  constexpr int kGzip = 16 + 15;  // zlib's words: a gzip header, the largest window
  if (inflateInit2(&stream, kGzip) != Z_OK) return Fail(ErrorCode::kInternal, "zlib cannot begin");
  std::string text;
  std::string piece(size_t{1} << 18, '\0');
  int state = Z_OK;
  while (state == Z_OK && text.size() <= most) {
    if (stream.avail_in == 0) {
      const size_t part = std::min(packed.size(), size_t{1} << 24);
      if (part == 0) break;
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
      stream.avail_in = static_cast<uInt>(part);
      packed.remove_prefix(part);
    }
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(piece, 0, piece.size() - stream.avail_out);
    if (state == Z_STREAM_END && (stream.avail_in > 0 || !packed.empty())) state = inflateReset(&stream);
  }
  inflateEnd(&stream);
  if (text.size() > most) return Fail(ErrorCode::kUsage, "what gzip has packed is too large");
  if (state != Z_STREAM_END) return Fail(ErrorCode::kUsage, "what gzip has packed is damaged or cut off");
  return text;
}

Result<Trace> ReadTraceFile(const std::string& path, std::string_view format, const ColumnMap& columns) {
  OC_TRY(text, ReadAll(path));
  const auto named = [&](auto result) {
    if (!result) result.error().message.insert(0, path + ": ");
    return result;
  };
  if (text.starts_with("\x1f\x8b")) {
    OC_TRY(plain, named(Gunzip(text, kMostBytes)));
    text = std::move(plain);
  }
  auto kind = format.empty() ? named(GuessTraceFormat(text)) : TraceFormatNamed(format);
  if (!kind) return Fail(std::move(kind).error());
  return named(ReadTrace(text, *kind, columns));
}

}  // namespace overcap
