// SPDX-License-Identifier: Apache-2.0
#include "snapshot/repository/testing/stepped_store.h"

namespace overcap {
namespace {

constexpr int64_t kStepsPerSpeed = 100;

class SteppedStore : public Store {
 public:
  SteppedStore(StepStage* stage, size_t actor, std::shared_ptr<Store> inner)
      : stage_(stage), actor_(actor), inner_(std::move(inner)) {}

  Result<void> Put(const std::string& key, std::span<const std::string_view> pieces, PutMode mode) override {
    return Step<Result<void>>([&] { return inner_->Put(key, pieces, mode); });
  }
  Result<void> GetIntoIf(const StoredObjectInfo& object, int64_t offset, int64_t limit,
                         std::string* out) const override {
    return Step<Result<void>>([&] { return inner_->GetIntoIf(object, offset, limit, out); });
  }
  Result<StoredObjectInfo> Stat(const std::string& key) const override {
    return Step<Result<StoredObjectInfo>>([&] { return inner_->Stat(key); });
  }
  Result<StorePage> List(const std::string& prefix, const std::string& next) const override {
    return Step<Result<StorePage>>([&] { return inner_->List(prefix, next); });
  }
  Result<void> Remove(const std::string& key) override {
    return Step<Result<void>>([&] { return inner_->Remove(key); });
  }
  Result<int64_t> CleanUp(int64_t older_than_us) override {
    return Step<Result<int64_t>>([&] { return inner_->CleanUp(older_than_us); });
  }
  std::string Location() const override { return inner_->Location(); }

 private:
  template <typename R>
  R Step(const std::function<R()>& call) const {
    R result = Fail(ErrorCode::kUnavailable, "the process is dead");
    if (stage_->Begin(actor_)) result = call();
    stage_->End();
    return result;
  }

  StepStage* stage_;
  const size_t actor_;
  const std::shared_ptr<Store> inner_;
};

}  // namespace

StepStage::~StepStage() {
  for (std::thread& thread : threads_) thread.join();
}

void StepStage::AddActor(std::shared_ptr<Store> inner, std::function<void(std::shared_ptr<Store>)> act,
                         uint64_t die_percent) {
  const std::lock_guard lock(mutex_);
  const size_t number = actors_.size();
  actors_.push_back(std::make_unique<Actor>());
  if (random_.Below(100) < die_percent) actors_[number]->dies_after = static_cast<int64_t>(random_.Below(40));
  threads_.emplace_back([this, number, inner = std::move(inner), act = std::move(act)] {
    act(std::make_shared<SteppedStore>(this, number, inner));
    const std::lock_guard ending(mutex_);
    actors_[number]->ended = true;
    changed_.notify_all();
  });
}

bool StepStage::Begin(size_t number) {
  std::unique_lock lock(mutex_);
  Actor& actor = *actors_[number];
  ++actor.waiting;
  changed_.notify_all();
  changed_.wait(lock, [&] { return actor.granted; });
  actor.granted = false;
  --actor.waiting;
  if (actor.dies_after >= 0 && actor.dies_after-- == 0) actor.dead = true;
  return !actor.dead;
}

void StepStage::End() {
  const std::lock_guard lock(mutex_);
  calling_ = false;
  changed_.notify_all();
}

void StepStage::ChangeSpeeds() {
  for (const auto& actor : actors_) actor->speed = uint64_t{1} << random_.Below(16);
}

StepStage::Actor* StepStage::Next(const std::vector<Actor*>& ready) {
  uint64_t sum = 0;
  for (const Actor* actor : ready) sum += actor->speed;
  uint64_t at = random_.Below(sum);
  for (Actor* actor : ready) {
    if (at < actor->speed) return actor;
    at -= actor->speed;
  }
  return ready.back();
}

void StepStage::Play() {
  std::unique_lock lock(mutex_);
  for (;;) {
    // Whoever has not ended will make a call: only then is the choice the seed's and not the machine's.
    changed_.wait(lock, [&] {
      if (calling_) return false;
      for (const auto& actor : actors_) {
        if (!actor->ended && actor->waiting == 0) return false;
      }
      return true;
    });
    std::vector<Actor*> ready;
    for (const auto& actor : actors_) {
      if (!actor->ended) ready.push_back(actor.get());
    }
    if (ready.empty()) return;
    if (steps_ % kStepsPerSpeed == 0) ChangeSpeeds();
    Next(ready)->granted = true;
    calling_ = true;
    ++steps_;
    changed_.notify_all();
  }
}

}  // namespace overcap
