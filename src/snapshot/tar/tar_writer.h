// SPDX-License-Identifier: Apache-2.0
// Writes a tar file of the pax form that GNU tar, bsdtar and Python's tarfile read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "snapshot/tar/byte_stream.h"
#include "snapshot/tar/tar_item.h"

namespace overcap {

class TarWriter {
 public:
  explicit TarWriter(ByteSink& sink) : sink_(sink) {}

  // The entry; then exactly the data that is stored of it: the file's size, or the sum of its runs when it is
  // sparse. The path "" is the folder itself.
  Result<void> Begin(const TarItem& item);
  Result<void> Data(std::string_view bytes);
  // After the last: end mark and filling. Does not finish the sink.
  Result<void> Finish();

 private:
  Result<void> Close();  // the padding of the entry before; kInternal when data is missing

  ByteSink& sink_;
  std::string scratch_;
  int64_t left_ = 0, padding_ = 0, written_ = 0;
};

}  // namespace overcap
