// SPDX-License-Identifier: Apache-2.0
#include "stores/azblob/azure_lease.h"

#include "base/text.h"
#include "net/http/digests.h"
#include "stores/object_requests.h"

namespace overcap {
namespace {

// In the form that the service wants: 8-4-4-4-12.
std::string NewLeaseId() {
  std::string id = NewPutMark();
  for (const size_t at : {8, 13, 18, 23}) id.insert(at, "-");
  return id;
}

bool IsLeased(const AzureProblem& problem) {
  return problem.code == "LeaseAlreadyPresent" || problem.code == "LeaseIsBreakingAndCannotBeAcquired" ||
         problem.code == "LeaseIdMissing" || problem.code == "LeaseIdMismatchWithLeaseOperation";
}

// What the service says to somebody whose lease is over, or whose blob is gone.
bool IsLost(const AzureProblem& problem) {
  return problem.status == 409 || problem.status == 412 || problem.status == 404;
}

}  // namespace

AzureLease::AzureLease(const AzureContainer& container, std::string blob)
    : container_(container), blob_(std::move(blob)), id_(NewLeaseId()) {}

Result<AzureLease::Seen> AzureLease::Read() const {
  AzureCall call;
  call.blob = blob_;
  Seen seen;
  OC_TRY(answer, container_.service().Call(call, &seen.bytes, kLockRecordMost + 1));
  if (answer.problem && answer.problem->code == "BlobNotFound") return Seen();
  if (answer.problem) return Fail(container_.ErrorOf(*answer.problem, blob_, "read"));
  seen.there = true;
  const std::string_view state = answer.head.Find("x-ms-lease-state");
  seen.leased = state == "leased" || state == "breaking";
  return seen;
}

LockRecord AzureLease::HolderOf(const Seen& seen) const {
  LockRecord unknown;
  unknown.held = true;
  return DecodeLockRecord(seen.bytes, blob_).value_or(unknown);
}

Result<std::optional<LockRecord>> AzureLease::Look() {
  OC_TRY(seen, Read());
  return seen.leased ? std::optional(HolderOf(seen)) : std::nullopt;
}

Result<AzureAnswer> AzureLease::Lease(const std::string& action, std::vector<HttpHeader> more) const {
  AzureCall call;
  call.method = "PUT";
  call.blob = blob_;
  call.query = {{"comp", "lease"}};
  call.headers = std::move(more);
  call.headers.push_back({"x-ms-lease-action", action});
  call.has_body = true;
  std::string body;
  return container_.service().Call(call, &body);
}

Result<void> AzureLease::PutBlob(std::string_view bytes, const HttpHeader& condition) const {
  AzureCall call;
  call.method = "PUT";
  call.blob = blob_;
  call.body = std::span(&bytes, 1);
  call.has_body = true;
  call.headers = {{"content-type", "application/octet-stream"},
                  {"content-md5", Base64Of(Md5OfPieces(call.body))},
                  {"x-ms-blob-type", "BlockBlob"},
                  condition};
  std::string body;
  OC_TRY_VOID(container_.Must(call, "write", &body));
  return {};
}

// With the lease: a turn of our own, and our name where others look.
Result<void> AzureLease::SignIn(LockRecord own) {
  OC_TRY(seen, Read());
  LockRecord before;
  if (!seen.bytes.empty()) {
    auto read = DecodeLockRecord(seen.bytes, blob_);
    if (!read) {
      read.error().hint =
          StrCat("something else than a lock is there; to remove it: overcap store rm ",
                 ShellQuote(StrCat(container_.location(), "/", blob_.substr(container_.prefix().size()))));
      return Fail(read.error());
    }
    before = std::move(*read);
  }
  // Ours: written by a try whose answer was lost.
  own.turn = before.holder == own.holder ? before.turn : before.turn + 1;
  OC_TRY_VOID(PutBlob(EncodeLockRecord(own), {"x-ms-lease-id", id_}));
  turn_ = own.turn;
  return {};
}

Result<LockTake> AzureLease::Take(const LockRecord& own) {
  if (own.lease_us < kShortestLeaseUs || own.lease_us > kLongestLeaseUs)
    return Fail(ErrorCode::kUsage, StrCat("Azure leases last from ", kShortestLeaseUs / 1'000'000, " to ",
                                          kLongestLeaseUs / 1'000'000, " seconds"));
  const std::string seconds = std::to_string(own.lease_us / 1'000'000);
  for (bool made = false;; made = true) {
    const int64_t sent_us = OwnClock().MonotonicUs();
    OC_TRY(answer, Lease("acquire", {{"x-ms-lease-duration", seconds}, {"x-ms-proposed-lease-id", id_}}));
    if (!answer.problem) {
      if (auto signed_in = SignIn(own); !signed_in) {
        (void)OfHolder("release");
        id_ = NewLeaseId();  // what comes late of the old one must not end what is taken next
        return Fail(signed_in.error());
      }
      sent_us_ = sent_us;
      return LockTake{true, {}};
    }
    if (answer.problem->code == "BlobNotFound" && !made) {
      const auto put = PutBlob("", {"if-none-match", "*"});
      if (!put && put.error().code != ErrorCode::kConflict) return Fail(put.error());
      continue;
    }
    if (!IsLeased(*answer.problem)) return Fail(container_.ErrorOf(*answer.problem, blob_, "lease"));
    OC_TRY(seen, Read());
    return LockTake{false, HolderOf(seen)};
  }
}

Result<void> AzureLease::OfHolder(const std::string& action) {
  OC_TRY(answer, Lease(action, {{"x-ms-lease-id", id_}}));
  if (!answer.problem) return {};
  if (!IsLost(*answer.problem)) return Fail(container_.ErrorOf(*answer.problem, blob_, action));
  return Fail(ErrorCode::kConflict, StrCat("the lock ", Quoted(blob_.substr(container_.prefix().size()), 200),
                                           " in store ", Quoted(container_.location(), 300),
                                           " is not ours any more (", answer.problem->code, ")"));
}

Result<void> AzureLease::Renew() {
  const int64_t sent_us = OwnClock().MonotonicUs();
  OC_TRY_VOID(OfHolder("renew"));
  sent_us_ = sent_us;
  return {};
}

Result<void> AzureLease::Release() {
  return OfHolder("release");
}

}  // namespace overcap
