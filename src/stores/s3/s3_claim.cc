// SPDX-License-Identifier: Apache-2.0
// Exclusive creation out of puts, lists and removes alone (docs/adr/0009-create-by-claim.md).
#include <chrono>
#include <thread>

#include "base/text.h"
#include "stores/object_requests.h"
#include "stores/s3/s3_bucket.h"
#include "sys/random.h"

namespace overcap {
namespace {

constexpr int64_t kPatienceUs = 120'000'000;
constexpr int64_t kStaleUs = 600'000'000;  // longer than any put of ours lasts
constexpr int64_t kLookAgainUs = 20'000;

// One writer's claim on a key.
class Claim {
 public:
  Claim(const S3Bucket& bucket, const std::string& key)
      : bucket_(bucket), folder_(ClaimFolder(bucket, key)) {}
  ~Claim() { Withdraw(); }

  Result<void> Make() {
    own_ = StrCat(folder_, NewPutMark());
    return bucket_.PutNote(own_, "");
  }

  void Withdraw() {
    if (!own_.empty()) (void)bucket_.Remove(own_);
    own_.clear();
  }

  enum class Standing { kAlone, kFirst, kBehind };
  // Whoever sees nobody else is alone, and stays so: all who come later see this claim.
  Result<Standing> Look() const {
    OC_TRY(page, bucket_.List(folder_, ""));
    bool alone = true, first = true, seen = false;
    for (const StoredObjectInfo& each : page.objects) {
      seen = seen || each.key == own_;
      if (each.key == own_ || page.now_us - each.modified_us > kStaleUs) continue;
      alone = false;
      first = first && own_ < each.key;
    }
    if (!seen) return Standing::kBehind;  // the list is behind the times: begin anew
    return alone ? Standing::kAlone : first ? Standing::kFirst : Standing::kBehind;
  }

 private:
  const S3Bucket& bucket_;
  const std::string folder_;
  std::string own_;
};

Result<bool> Exists(const S3Bucket& bucket, const std::string& key) {
  const auto head = bucket.Head(key);
  if (head) return true;
  if (head.error().code == ErrorCode::kNotFound) return false;
  return Fail(head.error());
}

void Sleep(int64_t us) {
  std::this_thread::sleep_for(std::chrono::microseconds(us));
}

tl::unexpected<Error> IsThere(const S3Bucket& bucket, const std::string& key) {
  return Fail(ErrorCode::kConflict, StrCat(Quoted(key.substr(bucket.prefix().size()), 200),
                                           " is already in store ", Quoted(bucket.location(), 500)));
}

}  // namespace

Result<void> CreateByClaim(const S3Bucket& bucket, const std::string& key,
                           const std::function<Result<void>()>& put) {
  const Clock& clock = bucket.service().clock();
  const int64_t end = clock.MonotonicUs() + kPatienceUs;
  KernelRandom random;
  for (int round = 0; clock.MonotonicUs() < end; ++round) {
    OC_TRY(there, Exists(bucket, key));
    if (there) return IsThere(bucket, key);
    Claim claim(bucket, key);
    OC_TRY_VOID(claim.Make());
    OC_TRY(standing, claim.Look());
    while (standing == Claim::Standing::kFirst && clock.MonotonicUs() < end) {
      Sleep(kLookAgainUs);
      OC_TRY(again, claim.Look());
      standing = again;
    }
    if (standing == Claim::Standing::kAlone) {
      OC_TRY(come, Exists(bucket, key));  // between the first look and the claim
      if (come) return IsThere(bucket, key);
      return put();
    }
    claim.Withdraw();
    Sleep(static_cast<int64_t>(random.Next() % (50'000ull << std::min(round, 5))));
  }
  return Fail(ErrorCode::kUnavailable,
              StrCat("others are about to write ", Quoted(key.substr(bucket.prefix().size()), 200),
                     " in store ", Quoted(bucket.location(), 500)));
}

}  // namespace overcap
