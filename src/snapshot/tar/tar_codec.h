// SPDX-License-Identifier: Apache-2.0
// Compressed tars: .tar, .tar.gz, .tar.lz4, .tar.zst.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/tar/byte_stream.h"

namespace overcap {

enum class TarCodec { kPlain, kGzip, kLz4, kZstd };

// By the end of the name: "a.tar", ".tar.gz" or ".tgz", ".tar.lz4", ".tar.zst" or ".tar.zstd". nullopt:
// another.
std::optional<TarCodec> TarCodecOfName(std::string_view name);
// "plain", "gzip", "lz4", "zstd".
std::optional<TarCodec> TarCodecOfWord(std::string_view word);

// What is written here is compressed into `next`, which stays the caller's and is not finished. `threads`:
// for codecs that can use several.
Result<std::unique_ptr<ByteSink>> CompressInto(ByteSink& next, TarCodec codec, int threads);

// The plain bytes of `source` (it stays the caller's), whatever it is compressed with: told by its first
// bytes. Several frames one after the other are read as one. Errors are kCorrupt and name `name`; kUsage for
// a kind that is known but not read (xz, bzip2, zip).
Result<std::unique_ptr<ByteSource>> Decompress(ByteSource& source, const std::string& name);

}  // namespace overcap
