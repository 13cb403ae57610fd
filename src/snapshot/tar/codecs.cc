// SPDX-License-Identifier: Apache-2.0
#include "snapshot/tar/codecs.h"

namespace overcap {

Result<bool> CodecInput::Refill() {
  if (begin_ < end_) return true;
  OC_TRY(count, source_.Read(buffer_.data(), buffer_.size()));
  begin_ = 0;
  end_ = count;
  return count > 0;
}

}  // namespace overcap
