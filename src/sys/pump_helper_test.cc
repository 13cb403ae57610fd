// SPDX-License-Identifier: Apache-2.0
#include "sys/pump_helper.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace overcap {
namespace {

constexpr size_t kBytes = 4 << 20;

// A pump to a file without a name, and somebody who writes one letter kBytes times and closes.
struct Flow {
  explicit Flow(char letter_of_it) : letter(letter_of_it) {
    file = Fd(memfd_create("log", MFD_CLOEXEC));
    pump = *OutputPump::Make(file.Get());
    const int end = dup(pump.WriteFd());
    pump.CloseWriteEnd();
    writer = std::thread([this, end] {
      const std::string block(64 << 10, letter);
      for (size_t done = 0; done < kBytes; done += block.size()) {
        if (write(end, block.data(), block.size()) < 0) break;
      }
      close(end);
    });
  }
  ~Flow() { writer.join(); }
  std::string Content() const {
    std::string text(kBytes + 1, '\0');
    text.resize(std::max<ssize_t>(0, pread(file.Get(), text.data(), text.size(), 0)));
    return text;
  }
  char letter;
  Fd file;
  OutputPump pump;
  std::thread writer;
};

bool CarryAll() {
  Flow a('a'), b('b'), c('c');
  PumpHelper helper;
  while (!a.pump.Ended() || !b.pump.Ended() || !c.pump.Ended()) {
    if (!helper.Begin({&a.pump, &b.pump}, 0)) return false;
    c.pump.Pump(0);
    helper.Finish();
  }
  bool whole = a.pump.moved_bytes() == static_cast<int64_t>(kBytes);
  for (const Flow* flow : {&a, &b, &c}) whole = whole && flow->Content() == std::string(kBytes, flow->letter);
  return whole;
}

// In a process of its own: after other tests have started programs by vfork, the race detector no longer
// knows what this one did before.
TEST(PumpHelper, CarriesSomePipesWhileItsOwnerCarriesOthers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::exit(CarryAll() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(PumpHelper, EndsWhenItWasNeverNeeded) {
  PumpHelper helper;
}

}  // namespace
}  // namespace overcap
