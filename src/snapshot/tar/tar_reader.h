// SPDX-License-Identifier: Apache-2.0
// Reads a tar file as it comes: v7, ustar, GNU and pax, with long names and sparse files of all kinds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "snapshot/tar/byte_stream.h"
#include "snapshot/tar/pax_overrides.h"
#include "snapshot/tar/tar_item.h"

namespace overcap {

// Errors are kCorrupt, one line that names the tar and the last entry that was read, or those of the source.
// Nothing in the tar makes it use more than a few MiB of memory beside what an entry says of itself.
class TarReader {
 public:
  // `name` is for messages. The source stays the caller's.
  TarReader(ByteSource& source, std::string name);

  // The next entry; false after the last. Data of the entry before that was not taken is passed over. At the
  // end the source has been read to its own end: a cut or damaged stream is found.
  Result<bool> Next(TarItem* item);
  // The next piece of the entry's stored data; "" after the last. Valid until the next call.
  Result<std::string_view> Data();

 private:
  Result<void> Fill(size_t least);  // until that many bytes stand in the buffer or the source has ended
  Result<std::string_view> Block();
  Result<std::string> Body(int64_t size, std::string_view what);
  Result<void> Skip(int64_t size);
  Result<bool> Header(TarItem* item);
  Result<bool> TakeExtension(char type, int64_t size);
  Result<void> Describe(std::string_view block, char type, int64_t size, TarItem* item);
  Result<void> ReadOldSparse(std::string_view block, TarItem* item);
  Result<void> ReadSparse(TarItem* item);
  Result<void> End();
  tl::unexpected<Error> Damaged(std::string_view what) const;

  ByteSource& source_;
  const std::string name_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;  // of what is unread in buffer_
  bool source_ended_ = false, ended_ = false;
  int64_t data_left_ = 0;  // of the entry
  int64_t padding_ = 0;    // behind it
  std::string last_path_;  // for messages
  PaxOverrides global_, local_;
  bool has_local_ = false;
  int64_t local_bytes_ = 0;            // of the headers that made local_
  std::string long_name_, long_link_;  // GNU
};

}  // namespace overcap
