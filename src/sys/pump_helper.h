// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "sys/output_pump.h"

namespace overcap {

// A second pair of hands for output that one thread alone cannot carry: pumps some pipes while its owner
// pumps others. The thread is started when it is first needed and sees no signal.
class PumpHelper {
 public:
  PumpHelper() = default;
  ~PumpHelper();
  PumpHelper(const PumpHelper&) = delete;
  PumpHelper& operator=(const PumpHelper&) = delete;

  // Begins to pump these; they are its own until Finish() has returned. False where there can be no thread:
  // nothing was begun.
  bool Begin(std::vector<OutputPump*> pumps, int64_t now_us);
  void Finish();

 private:
  enum Turn : int { kIdle, kWork, kStop };
  bool Start();
  void Work();

  std::thread thread_;
  std::atomic<int> turn_{kIdle};
  std::vector<OutputPump*> pumps_;
  int64_t now_us_ = 0;
};

}  // namespace overcap
