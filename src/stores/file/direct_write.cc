// SPDX-License-Identifier: Apache-2.0
#include "stores/file/direct_write.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace overcap {
namespace {

constexpr size_t kSmallestDirect = size_t{1} << 20;
constexpr size_t kBuffer = size_t{2} << 20;
constexpr size_t kAlignment = 4096;  // of memory, offsets and lengths: what every file system takes

// Takes the `written` first bytes off the front.
void Advance(std::vector<iovec>* parts, size_t* first, size_t written) {
  while (*first < parts->size() && written >= (*parts)[*first].iov_len)
    written -= (*parts)[(*first)++].iov_len;
  if (*first == parts->size()) return;
  iovec& part = (*parts)[*first];
  part.iov_base = static_cast<char*>(part.iov_base) + written;
  part.iov_len -= written;
}

int WriteCached(int fd, std::span<const std::string_view> pieces) {
  std::vector<iovec> parts;
  for (const std::string_view piece : pieces) {
    if (!piece.empty()) parts.push_back({const_cast<char*>(piece.data()), piece.size()});
  }
  for (size_t first = 0; first < parts.size();) {
    const ssize_t n =
        writev(fd, parts.data() + first, static_cast<int>(std::min<size_t>(parts.size() - first, IOV_MAX)));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    Advance(&parts, &first, static_cast<size_t>(n));
  }
  return 0;
}

// Gives the bytes of the pieces, a buffer at a time.
class PieceReader {
 public:
  explicit PieceReader(std::span<const std::string_view> pieces) : pieces_(pieces) {}

  size_t Fill(char* buffer, size_t size) {
    size_t filled = 0;
    while (filled < size && !pieces_.empty()) {
      const std::string_view rest = pieces_.front().substr(at_);
      const size_t taken = std::min(size - filled, rest.size());
      std::memcpy(buffer + filled, rest.data(), taken);
      filled += taken;
      at_ += taken;
      if (taken == rest.size()) {
        pieces_ = pieces_.subspan(1);
        at_ = 0;
      }
    }
    return filled;
  }

 private:
  std::span<const std::string_view> pieces_;
  size_t at_ = 0;
};

int WriteFully(int fd, const char* bytes, size_t size, int64_t offset) {
  while (size > 0) {
    const ssize_t n = pwrite(fd, bytes, size, offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes += n;
    size -= static_cast<size_t>(n);
    offset += n;
  }
  return 0;
}

// The last part is written up to a whole block and cut to its size then.
int WriteDirect(int fd, std::span<const std::string_view> pieces, size_t total) {
  const std::unique_ptr<char, decltype(&std::free)> buffer(
      static_cast<char*>(std::aligned_alloc(kAlignment, kBuffer)), &std::free);
  if (!buffer) return ENOMEM;
  PieceReader reader(pieces);
  for (size_t at = 0; at < total; at += kBuffer) {
    const size_t filled = reader.Fill(buffer.get(), kBuffer);
    const size_t whole = (filled + kAlignment - 1) / kAlignment * kAlignment;
    std::memset(buffer.get() + filled, 0, whole - filled);
    if (const int error = WriteFully(fd, buffer.get(), whole, static_cast<int64_t>(at)); error != 0)
      return error;
  }
  return total % kAlignment == 0 || ftruncate(fd, static_cast<off_t>(total)) == 0 ? 0 : errno;
}

}  // namespace

int WriteAll(int fd, std::span<const std::string_view> pieces) {
  size_t total = 0;
  for (const std::string_view piece : pieces) total += piece.size();
  const int flags = total < kSmallestDirect ? -1 : fcntl(fd, F_GETFL);
  if (flags == -1 || fcntl(fd, F_SETFL, flags | O_DIRECT) != 0) return WriteCached(fd, pieces);
  const int error = WriteDirect(fd, pieces, total);
  (void)fcntl(fd, F_SETFL, flags);
  // Some file systems let the flag be set and then want other sizes, or none.
  if (error != EINVAL && error != ENOTSUP) return error;
  return ftruncate(fd, 0) == 0 ? WriteCached(fd, pieces) : errno;
}

}  // namespace overcap
