// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/copy_proof.h"

#include <algorithm>

#include "control/transfer/md5_lanes.h"

namespace overcap {
namespace {

// Larger parts would need too much memory while they are kept.
constexpr int64_t kSmallestPart = 1 << 20, kLargestPart = 16 << 20;
constexpr int64_t kReadAtOnce = 4 << 20;

tl::unexpected<Error> Differs() {
  return Fail(ErrorCode::kCorrupt, "it came with another checksum than its store says");
}

// The MD5 of the MD5s of the parts.
std::string Md5OfParts(const std::vector<std::string>& digests) {
  Md5 md5;
  for (const std::string& digest : digests) md5.Add(digest);
  return md5.Hex();
}

}  // namespace

int64_t CopyProof::BestPartSize(const StoredChecksum& told) {
  if (told.part_sizes.empty()) return 0;
  const int64_t size = told.part_sizes.front();
  return size >= kSmallestPart && size <= kLargestPart ? size : 0;
}

CopyProof::CopyProof(StoredChecksum told, int64_t size, int64_t part_size)
    : told_(std::move(told)),
      size_(size),
      any_order_(!told_.part_sizes.empty() && told_.part_sizes.front() == part_size) {
  if (any_order_) digests_.resize(static_cast<size_t>(PartCount(size, part_size)));
}

void CopyProof::Add(int64_t part, std::string_view bytes) {
  if (AnyOrder()) {
    static Md5Crew crew;  // of all copies: the more come together, the less each costs
    digests_[static_cast<size_t>(part)] = crew.Hash(bytes);  // each thread its own
    return;
  }
  if (!InOrder()) return;
  std::unique_lock lock(mutex_);
  turn_.wait(lock, [&] { return next_ == part || given_up_ || incomplete_; });
  if (given_up_ || incomplete_) return;
  lock.unlock();
  AddInOrder(bytes);  // only the one whose turn it is
  lock.lock();
  ++next_;
  turn_.notify_all();
}

void CopyProof::AddInOrder(std::string_view bytes) {
  const int64_t part_size = told_.part_sizes.empty() ? size_ + 1 : told_.part_sizes.front();
  while (!bytes.empty()) {
    const auto taken =
        static_cast<size_t>(std::min(static_cast<int64_t>(bytes.size()), part_size - in_part_));
    running_.Add(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    in_part_ += static_cast<int64_t>(taken);
    if (in_part_ < part_size) continue;
    digests_.push_back(running_.Bytes());
    running_ = Md5();
    in_part_ = 0;
  }
}

void CopyProof::GiveUp() {
  {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
  }
  turn_.notify_all();
}

void CopyProof::Incomplete() {
  const std::lock_guard lock(mutex_);
  incomplete_ = true;
}

std::string CopyProof::Sum() {
  if (told_.part_sizes.empty()) return running_.Hex();
  if (in_part_ > 0) digests_.push_back(running_.Bytes());
  return Md5OfParts(digests_);
}

Result<ProofKind> CopyProof::Judge(const ReadBack& read_back) {
  if (told_.by_ranges) return ProofKind::kMd5OfRanges;
  if (told_.md5.empty() && told_.part_sizes.empty()) return ProofKind::kNone;
  if (!incomplete_) {
    const bool in_parts = !told_.part_sizes.empty();
    if (Sum() == (in_parts ? told_.md5_of_parts : told_.md5))
      return in_parts ? ProofKind::kMd5OfParts : ProofKind::kMd5;
    if (!in_parts || told_.sure) return Differs();
  }
  if (!read_back) return ProofKind::kNone;
  return JudgeByReading(read_back, !incomplete_);
}

// The size of the parts was only guessed, or some of them were there before.
Result<ProofKind> CopyProof::JudgeByReading(const ReadBack& read_back, bool first_was_tried) const {
  if (!told_.md5.empty()) {
    OC_TRY(matches, Matches(read_back, size_ + 1, told_.md5));
    if (!matches) return Differs();
    return ProofKind::kMd5;
  }
  for (size_t i = first_was_tried ? 1 : 0; i < told_.part_sizes.size(); ++i) {
    OC_TRY(matches, Matches(read_back, told_.part_sizes[i], told_.md5_of_parts));
    if (matches) return ProofKind::kMd5OfParts;
  }
  if (told_.sure) return Differs();
  return ProofKind::kNone;
}

Result<bool> CopyProof::Matches(const ReadBack& read_back, int64_t part_size,
                                const std::string& expected) const {
  StoredChecksum told = told_;
  const bool whole = part_size > size_;
  if (whole)
    told.part_sizes.clear();
  else
    told.part_sizes = {part_size};
  CopyProof again(std::move(told), size_, 0);
  std::string bytes;
  for (int64_t at = 0; at < size_; at += kReadAtOnce) {
    const int64_t wanted = std::min(kReadAtOnce, size_ - at);
    OC_TRY_VOID(read_back(at, wanted, &bytes));
    if (static_cast<int64_t>(bytes.size()) != wanted) return false;
    again.AddInOrder(bytes);
  }
  return again.Sum() == expected;
}

Result<ProofKind> ProveWhole(const StoredChecksum& told, std::string_view bytes) {
  CopyProof proof(told, static_cast<int64_t>(bytes.size()), 0);
  proof.Incomplete();
  return proof.Judge([&](int64_t offset, int64_t size, std::string* out) -> Result<void> {
    *out = bytes.substr(static_cast<size_t>(offset), static_cast<size_t>(size));
    return {};
  });
}

}  // namespace overcap
