// SPDX-License-Identifier: Apache-2.0
// The seam behind which bytes live: a folder, memory, an object store. stores/testing/store_conformance.h
// says what each must do; a test may not tell which one it runs on.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace overcap {

struct StoredObjectInfo {
  std::string key = {};
  int64_t size = 0;
  int64_t modified_us = 0;    // wall time of the store; for people and for clean-up, never for correctness
  std::string version = {};   // another one whenever the content is (an ETag); "" where the store has none
  std::string md5 = {};       // of the content, 32 hex digits, where the store tells it; else ""
  bool check_ranges = false;  // for who reads: the service is to prove each range (StoredChecksum::by_ranges)
  int64_t changed_us = 0;     // of a local file: its ctime, which no program can set back; else 0
};

// What a store tells of a content beyond its size, for who reads it to compare.
struct StoredChecksum {
  std::string md5 = {};  // of the content, 32 hex digits; "": not told
  // Of the MD5s, 16 bytes each, of its parts one after the other; "": not told.
  std::string md5_of_parts = {};
  // The parts' size, all but the last having the same: what it may be, the likeliest first.
  std::vector<int64_t> part_sizes = {};
  bool sure = false;       // that it is the first of these
  bool by_ranges = false;  // nothing of the whole, but the service can prove each range that is read
};

struct StorePage {
  std::vector<StoredObjectInfo> objects;  // by key
  std::string next;                       // give it to List for the page after this; "": this was the last
  int64_t left_out = 0;                   // objects in between whose names are no keys by the store's rule
  bool in_order = true;  // false: the service has an order of its own, and only this page was sorted here
};

// Which names objects may have; a store is opened with one of them. docs/formats/stores.md has all.
enum class KeyRule {
  kPlain,  // repositories: parts of `a-z A-Z 0-9 . _ -`, none beginning with '.', 900 bytes in all
  kAny,    // what people put there: every byte but NUL; 4095 bytes in all
  // Only to list and to remove: every name that a service has, such as "a//b", "folder/" or ""; elsewhere
  // as kAny.
  kService,
};

enum class PutMode {
  kReplace,  // whatever was there is replaced
  kCreate,   // kConflict when the key is there: exactly one of several writers wins
};

// A large object on its way into a store, part by part. Destroyed without a Finish that succeeded it leaves
// nothing behind; a killed process leaves what CleanUp finds.
class StoreUpload {
 public:
  virtual ~StoreUpload() = default;
  // Part i holds the bytes from i * PartSize() on; all but the last have this size. At least 1.
  virtual int64_t PartSize() const = 0;
  // May be called from several threads at once, in any order; again after an error. Gives the bytes back when
  // it returns. kUsage for a part that is none or has another size than it must have.
  virtual Result<void> Part(int64_t index, std::string_view bytes) = 0;
  // Whether the part is there, also from an upload that was cut off (Store::ResumeUpload).
  virtual bool Has(int64_t) const { return false; }
  // Bytes that have arrived, before Finish; kUsage where they cannot be read.
  virtual Result<void> ReadBack(int64_t offset, int64_t bytes, std::string* out) const;
  virtual bool CanReadBack() const { return false; }
  // A part will not come: who waits in Part for others is to end.
  virtual void GiveUp() {}
  // Instead of Finish, when what has arrived is not right: nothing of it is kept for one that goes on.
  virtual void Discard() {}
  // After all parts, once: the object appears, whole and durable. kUsage when a part is missing; kConflict as
  // Put. After kUnavailable it may be there or not, and Finish may be called again.
  virtual Result<void> Finish() = 0;
};

// Keys are relative paths; no part is empty, "." or ".." or longer than 255 bytes (ValidKey). Callers see to
// it that no key is the folder of another ("a" and "a/b"). Every function may be called from several threads
// at once; all others see an object at once, whole or not at all. Errors: kUsage a bad key, kNotFound,
// kDenied, kUnavailable (full, unreachable; may be tried again), kConflict, kCorrupt.
class Store {
 public:
  static constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

  virtual ~Store() = default;

  // The pieces one after the other become the object; durable when it returns. After an error the key has its
  // old content or all of the new one.
  virtual Result<void> Put(const std::string& key, std::span<const std::string_view> pieces,
                           PutMode mode) = 0;
  // Bytes [offset, offset + limit), fewer at its end, into memory that the caller keeps from one to the next;
  // what `out` holds after an error is open. Of the object as Stat or List told of it: kConflict when it has
  // been replaced since, where the store can see it. Without a version: of whatever is there.
  virtual Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                 std::string* out) const = 0;
  virtual Result<StoredObjectInfo> Stat(const std::string& key) const = 0;
  // Keys that begin with `prefix` (which may end in the middle of a name), in byte order (but see
  // StorePage::in_order), some thousand at once; `next` as the page before said, "" at first. What is put or
  // removed meanwhile may or may not be seen. PagedListing reads page after page.
  virtual Result<StorePage> List(const std::string& prefix, const std::string& next) const = 0;
  // Fine when it is gone. A power cut soon after may bring it back.
  virtual Result<void> Remove(const std::string& key) = 0;
  // kUsage when the store cannot have an object of this name; nothing is asked of a service.
  virtual Result<void> Takes(const std::string& key) const;
  // Removes what crashed writers left behind (temporary files) and that has reached this age by the store's
  // own clock; how many there were.
  virtual Result<int64_t> CleanUp(int64_t older_than_us) = 0;
  // For an object that is too large for the memory, of exactly `size` bytes. Without an implementation of its
  // own a store gathers the parts in memory and puts them. Must not outlive the store.
  virtual Result<std::unique_ptr<StoreUpload>> StartUpload(const std::string& key, int64_t size,
                                                           PutMode mode);
  // The same, going on with what an upload of this identity that was cut off has left, where the store keeps
  // such; then it is kept also when this one is not finished. In parts of `part_size` where the store can do
  // that, 0: as it likes.
  virtual Result<std::unique_ptr<StoreUpload>> ResumeUpload(const std::string& key, int64_t size,
                                                            PutMode mode, const std::string& identity,
                                                            int64_t part_size);
  // What the content of an object, as Stat or List told of it, can be compared with.
  virtual Result<StoredChecksum> ChecksumOf(const StoredObjectInfo& object) const;
  // Whether it is a service on the net that compares what is put with a checksum that goes with it.
  virtual bool ChecksPuts() const { return false; }
  // Whether SetModified does anything: where it does, a copy has the time of what it was copied from.
  virtual bool KeepsTimes() const { return false; }
  virtual Result<void> SetModified(const std::string& key, int64_t modified_us);
  // As Put with kCreate, of something small, but never by a way on which two could win: kUsage where the
  // store itself has no other.
  virtual Result<void> CreateStrictly(const std::string& key, std::string_view bytes);
  // A store that was opened so that puts need not be durable makes them so now.
  virtual Result<void> Flush() { return {}; }
  // For messages: "/nfs/lab/store", "s3://bucket/prefix".
  virtual std::string Location() const = 0;

  // In terms of the above:
  Result<void> Put(const std::string& key, std::string_view bytes, PutMode mode = PutMode::kReplace);
  Result<void> GetInto(const std::string& key, int64_t offset, int64_t limit, std::string* out) const;
  Result<std::string> Get(const std::string& key, int64_t offset = 0, int64_t limit = kAll) const;
  // All pages, in byte order.
  Result<std::vector<StoredObjectInfo>> ListAll(const std::string& prefix) const;
};

constexpr size_t kLongestKey = 900, kLongestAnyKey = 4095, kLongestKeyPart = 255;
// How names of files begin that are on their way: never part of a key.
constexpr std::string_view kTemporaryBegin = ".overcap-tmp-", kPartialBegin = ".overcap-part-";

// kUsage, naming the key, unless it is one.
Result<void> ValidKey(std::string_view key, KeyRule rule = KeyRule::kPlain);
bool IsKey(std::string_view key, KeyRule rule);
// For stores: whether it is one part of a key; kUsage unless a key can begin so, or unless List gave `next`.
bool IsKeyPart(std::string_view part, KeyRule rule = KeyRule::kPlain);
Result<void> ValidListing(std::string_view prefix, std::string_view next, KeyRule rule = KeyRule::kPlain);
// kUsage for negative numbers.
Result<void> ValidRange(std::string_view key, int64_t offset, int64_t limit);
// For StoreUpload::Part: kUsage unless part `index` of an object of `size` bytes has `bytes` bytes.
Result<void> ValidPart(std::string_view key, int64_t size, int64_t part_size, int64_t index, size_t bytes);
// How many parts there are; an empty object has none.
int64_t PartCount(int64_t size, int64_t part_size);

}  // namespace overcap
