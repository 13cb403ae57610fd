// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace overcap {

// How many rounds a test plays that runs in one thread: all of them, but with the race detector, which can
// find nothing in it and takes tenfold, a twentieth. The other builds play all.
constexpr int RoundsInOneThread(int all) {
#if defined(__SANITIZE_THREAD__)
  return all / 20;
#else
  return all;
#endif
}

}  // namespace overcap
