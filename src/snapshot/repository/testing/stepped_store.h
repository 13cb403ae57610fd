// SPDX-License-Identifier: Apache-2.0
// Several actors on one store, of whom exactly one makes one call at a time, in the order that a seed gives:
// every interleaving of processes on several hosts can be played.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "stores/store.h"
#include "sys/random.h"

namespace overcap {

class StepStage {
 public:
  explicit StepStage(uint64_t seed) : random_(seed) {}
  ~StepStage();

  // `act` runs in a thread of its own once Play is called; all that it does goes through this actor's store.
  // Its threads may call too. `die_percent`: how likely it is killed at one of its first calls, like a
  // process.
  void AddActor(std::shared_ptr<Store> inner, std::function<void(std::shared_ptr<Store>)> act,
                uint64_t die_percent);
  // Until all have ended.
  void Play();
  int64_t steps() const { return steps_; }

  struct Actor {
    int waiting = 0;  // calls
    bool granted = false;
    bool ended = false;
    bool dead = false;
    int64_t dies_after = -1;  // calls
    uint64_t speed = 1;  // how likely it is next; changes now and then, so that some stand still for long
  };
  // Around each call; false: the actor is dead, the call must fail without an effect.
  bool Begin(size_t actor);
  void End();

 private:
  void ChangeSpeeds();                            // with mutex_
  Actor* Next(const std::vector<Actor*>& ready);  // with mutex_

  SeededRandom random_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Actor>> actors_;
  bool calling_ = false;
  int64_t steps_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace overcap
