// SPDX-License-Identifier: Apache-2.0
// A store that goes wrong as a test asks: dies like a killed process, is full, denies, loses, flips bits, is
// slow. Kill at every write:
//   for (int64_t n = 1, died = 2; died > 0; ++n) {
//     died = 0;
//     for (const StoreDeath when : {StoreDeath::kBefore, StoreDeath::kAfter}) {
//       auto disk = std::make_shared<MemStore>();      // build the world in it, then:
//       auto faulty = std::make_shared<FaultStore>(disk);
//       faulty->DieAt(n, when);
//       ... work on `faulty`; destroy all that uses it ...
//       died += faulty->dead();
//       ... look at `disk`, as the next process finds it ...
//     }
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stores/store.h"

namespace overcap {

enum class StoreOp { kPut, kGet, kStat, kList, kRemove, kCleanUp };
std::string_view StoreOpName(StoreOp op);  // "put"

struct StoreCall {
  StoreOp op = StoreOp::kPut;
  std::string key;  // the prefix for lists

  std::string Text() const;  // "put config"
};

// Which calls go wrong, and how.
struct StoreFault {
  std::vector<StoreOp> ops;  // empty: all
  std::string prefix;        // of the key
  int64_t skip = 0;          // so many such calls go well first
  int64_t times = std::numeric_limits<int64_t>::max();

  std::optional<Error> error;        // the call fails so
  bool took_effect = false;          // ... though it was done: the answer got lost
  std::optional<uint64_t> flip_bit;  // of what Get gives, counted from its first byte (modulo its size)
  int64_t delay_us = 0;              // first waits

  static StoreFault Full();    // puts: kUnavailable, "no space left"
  static StoreFault Denied();  // puts and removes: kDenied
  static StoreFault Lost(
      std::string prefix);  // gets and stats of these keys: kNotFound; lists still name them
};

enum class StoreDeath { kBefore, kAfter };  // the change took effect or it did not

// Changes are puts and removes; an upload is the put at its end. All functions may be called from several
// threads.
class FaultStore : public Store {
 public:
  explicit FaultStore(std::shared_ptr<Store> inner) : inner_(std::move(inner)) {}

  // At the n-th change from now (from 1) the process "dies": that call and all after it fail, and nothing
  // changes any more. Changes that other threads are in the middle of may still take effect.
  void DieAt(int64_t n, StoreDeath when);
  bool dead() const;
  void Revive();  // forgets about death and faults, for who goes on with the same object

  void Add(StoreFault fault);
  void ClearFaults();
  // Called before each call, outside of all locks: to act in between, or to wait.
  void OnCall(std::function<void(const StoreCall&)> hook);

  int64_t changes() const;                   // that took effect
  std::vector<std::string> History() const;  // these changes: "put config", "remove writers/1"
  int64_t CallsOf(StoreOp op) const;         // all calls, those that failed too

  // Harm to what is stored.
  Result<void> FlipStoredBit(const std::string& key, uint64_t bit);
  Result<void> Lose(const std::string& key);

  using Store::Put;
  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override;
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override;
  Result<StoredObjectInfo> Stat(const std::string& key) const override;
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override;
  Result<void> Remove(const std::string& key) override;
  Result<int64_t> CleanUp(int64_t older_than_us) override;
  bool KeepsTimes() const override { return inner_->KeepsTimes(); }
  Result<void> SetModified(const std::string& key, int64_t modified_us) override {
    return inner_->SetModified(key, modified_us);
  }
  Result<void> Flush() override { return inner_->Flush(); }
  std::string Location() const override { return inner_->Location(); }

 private:
  // What the faults make of one call.
  struct Fate {
    std::optional<Error> error;
    bool act = true;
    bool dies_after = false;
    std::optional<uint64_t> flip_bit;
    int64_t delay_us = 0;
  };
  Fate Decide(const StoreCall& call) const;
  Fate Begin(const StoreCall& call) const;  // Decide, after the hook; then the wait
  Result<void> Change(const StoreCall& call, const std::function<Result<void>()>& act);

  const std::shared_ptr<Store> inner_;
  mutable std::mutex mutex_;  // guards all below
  mutable std::vector<StoreFault> faults_;
  mutable bool dead_ = false;
  mutable int64_t begun_changes_ = 0;
  int64_t death_at_ = 0;  // of begun_changes_; 0: never
  StoreDeath death_when_ = StoreDeath::kBefore;
  std::function<void(const StoreCall&)> hook_;
  std::vector<std::string> history_;
  mutable std::vector<int64_t> calls_ = std::vector<int64_t>(6);
};

}  // namespace overcap
