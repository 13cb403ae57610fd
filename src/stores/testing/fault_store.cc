// SPDX-License-Identifier: Apache-2.0
#include "stores/testing/fault_store.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "base/text.h"

namespace overcap {
namespace {

Error DeadError() {
  return {ErrorCode::kInternal, "the process was killed", ""};
}

bool IsChange(StoreOp op) {
  return op == StoreOp::kPut || op == StoreOp::kRemove;
}

bool Concerns(const StoreFault& fault, const StoreCall& call) {
  const bool op =
      fault.ops.empty() || std::find(fault.ops.begin(), fault.ops.end(), call.op) != fault.ops.end();
  return op && call.key.starts_with(fault.prefix);
}

void Flip(std::string* bytes, uint64_t bit) {
  if (bytes->empty()) return;
  char& byte = (*bytes)[bit / 8 % bytes->size()];
  byte = static_cast<char>(byte ^ (1 << bit % 8));
}

}  // namespace

std::string_view StoreOpName(StoreOp op) {
  static constexpr std::array<std::string_view, 6> kNames = {"put",  "get",    "stat",
                                                             "list", "remove", "clean up"};
  return kNames[static_cast<size_t>(op)];
}

std::string StoreCall::Text() const {
  return StrCat(StoreOpName(op), " ", key);
}

StoreFault StoreFault::Full() {
  StoreFault fault;
  fault.ops = {StoreOp::kPut};
  fault.error = Error{ErrorCode::kUnavailable, "no space left on device", "free some space"};
  return fault;
}

StoreFault StoreFault::Denied() {
  StoreFault fault;
  fault.ops = {StoreOp::kPut, StoreOp::kRemove};
  fault.error = Error{ErrorCode::kDenied, "permission denied", ""};
  return fault;
}

StoreFault StoreFault::Lost(std::string prefix) {
  StoreFault fault;
  fault.ops = {StoreOp::kGet, StoreOp::kStat};
  fault.prefix = std::move(prefix);
  fault.error = Error{ErrorCode::kNotFound, StrCat("there is no '", fault.prefix, "'"), ""};
  return fault;
}

void FaultStore::DieAt(int64_t n, StoreDeath when) {
  const std::lock_guard lock(mutex_);
  death_at_ = begun_changes_ + n;
  death_when_ = when;
}

bool FaultStore::dead() const {
  const std::lock_guard lock(mutex_);
  return dead_;
}

void FaultStore::Revive() {
  const std::lock_guard lock(mutex_);
  dead_ = false;
  death_at_ = 0;
  faults_.clear();
}

void FaultStore::Add(StoreFault fault) {
  const std::lock_guard lock(mutex_);
  faults_.push_back(std::move(fault));
}

void FaultStore::ClearFaults() {
  const std::lock_guard lock(mutex_);
  faults_.clear();
}

void FaultStore::OnCall(std::function<void(const StoreCall&)> hook) {
  const std::lock_guard lock(mutex_);
  hook_ = std::move(hook);
}

int64_t FaultStore::changes() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(history_.size());
}

std::vector<std::string> FaultStore::History() const {
  const std::lock_guard lock(mutex_);
  return history_;
}

int64_t FaultStore::CallsOf(StoreOp op) const {
  const std::lock_guard lock(mutex_);
  return calls_[static_cast<size_t>(op)];
}

Result<void> FaultStore::FlipStoredBit(const std::string& key, uint64_t bit) {
  OC_TRY(bytes, inner_->Get(key));
  Flip(&bytes, bit);
  return inner_->Put(key, bytes);
}

Result<void> FaultStore::Lose(const std::string& key) {
  return inner_->Remove(key);
}

FaultStore::Fate FaultStore::Decide(const StoreCall& call) const {
  const std::lock_guard lock(mutex_);
  ++calls_[static_cast<size_t>(call.op)];
  Fate fate;
  const bool dies = !dead_ && IsChange(call.op) && ++begun_changes_ == death_at_;
  if (dead_ || (dies && death_when_ == StoreDeath::kBefore)) {
    dead_ = true;
    fate.error = DeadError(), fate.act = false;
    return fate;
  }
  fate.dies_after = dies;
  for (StoreFault& fault : faults_) {
    if (!Concerns(fault, call) || fault.times <= 0 || fault.skip-- > 0) continue;
    fault.skip = 0;
    --fault.times;
    fate.delay_us += fault.delay_us;
    if (fault.flip_bit) fate.flip_bit = fault.flip_bit;
    if (!fault.error || fate.error) continue;
    fate.error = fault.error;
    fate.act = fault.took_effect;
  }
  return fate;
}

FaultStore::Fate FaultStore::Begin(const StoreCall& call) const {
  std::function<void(const StoreCall&)> hook;
  {
    const std::lock_guard lock(mutex_);
    hook = hook_;
  }
  if (hook) hook(call);
  Fate fate = Decide(call);
  if (fate.delay_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(fate.delay_us));
  return fate;
}

Result<void> FaultStore::Change(const StoreCall& call, const std::function<Result<void>()>& act) {
  const Fate fate = Begin(call);
  Result<void> done = fate.act ? act() : Result<void>();
  const std::lock_guard lock(mutex_);
  if (fate.act && done) history_.push_back(call.Text());
  if (fate.dies_after) dead_ = true;
  if (fate.dies_after) return Fail(DeadError());
  if (fate.error) return Fail(*fate.error);
  return done;
}

Result<void> FaultStore::Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) {
  return Change({StoreOp::kPut, key}, [&] { return inner_->Put(key, pieces, mode); });
}

Result<void> FaultStore::Remove(const std::string& key) {
  return Change({StoreOp::kRemove, key}, [&] { return inner_->Remove(key); });
}

Result<void> FaultStore::GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                                   std::string* out) const {
  const Fate fate = Begin({StoreOp::kGet, object.key});
  if (fate.error) return Fail(*fate.error);
  OC_TRY_VOID(inner_->GetIntoIf(object, offset, limit, out));
  if (fate.flip_bit) Flip(out, *fate.flip_bit);
  return {};
}

Result<StoredObjectInfo> FaultStore::Stat(const std::string& key) const {
  const Fate fate = Begin({StoreOp::kStat, key});
  if (fate.error) return Fail(*fate.error);
  return inner_->Stat(key);
}

Result<StorePage> FaultStore::List(const std::string& prefix, const std::string& next) const {
  const Fate fate = Begin({StoreOp::kList, prefix});
  if (fate.error) return Fail(*fate.error);
  return inner_->List(prefix, next);
}

Result<int64_t> FaultStore::CleanUp(int64_t older_than_us) {
  const Fate fate = Begin({StoreOp::kCleanUp, ""});
  if (fate.error) return Fail(*fate.error);
  return inner_->CleanUp(older_than_us);
}

}  // namespace overcap
