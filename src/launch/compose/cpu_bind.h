// SPDX-License-Identifier: Apache-2.0
// --cpu-bind: one way to say it, whatever the launcher.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/compose/launch_command.h"

namespace overcap {

struct CpuBind {
  enum class Kind { kDefault, kNone, kThreads, kCores, kSockets, kNuma, kDepth, kList };
  Kind kind = Kind::kDefault;          // "": as the launcher does by itself
  int depth = 0;                       // of "depth:8"; 0: not told
  std::vector<std::vector<int>> sets;  // of "list:0-7,64:8-15": processors of local rank i, ascending
  std::string text;                    // as it was written
};

// "none", "threads", "cores", "sockets", "numa", "depth", "depth:N", "list:SET:SET..." with SET like
// "1-8,105". Singular words will do. kUsage names what is wrong.
Result<CpuBind> ParseCpuBind(std::string_view text);

// The words that ask `launcher` for it; `most` is the largest number of ranks on a host, `overload`:
// there may be more ranks than processors. kUsage when it cannot be said to this launcher: names the value,
// the launcher and what it knows.
Result<std::vector<std::string>> CpuBindWords(const CpuBind& bind, const Launcher& launcher, int most,
                                              bool overload);

// Which processors ranks get that we start ourselves: local_cpus.h.

}  // namespace overcap
