// SPDX-License-Identifier: Apache-2.0
// What PBS's programs say, taken apart. Pure; nothing here trusts its input.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launch/allocation.h"
#include "launch/detect/found_job.h"
#include "sys/capture_output.h"

namespace overcap {

struct PbsJobText {
  std::string id, name, owner, state, queue;       // owner without its host
  std::string exec_host;                           // "ml1/0*2+ml2/0*2": a host for every chunk
  std::string exec_vnode;                          // "(ml1:ncpus=2:ngpus=4)+(ml2:ncpus=2)"
  std::string select;                              // "3:ncpus=2:mpiprocs=2"
  int64_t start = 0;                               // stime, in seconds; 0: not told
  std::map<std::string, std::string> o_variables;  // PBS_O_*
};

// The jobs in what `qstat -f -F json` printed, in its order; those without a proper id are skipped. kCorrupt
// when it is no such JSON (cut off, binary).
Result<std::vector<PbsJobText>> ParseQstat(std::string_view output);

// The job's hosts, each once, in order. slots: their mpiprocs (1 for a chunk that asks for none); gpus: the
// sum of ngpus over their vnodes, -1 when no vnode of the job has any. kCorrupt when exec_host is no such
// text.
Result<std::vector<AllocatedHost>> HostsOf(const PbsJobText& job);

// A node file as PBS would write it: a line for every slot.
std::string NodeFileText(const std::vector<AllocatedHost>& hosts);

// What `qstat ID` answered.
JobLife PbsLifeFrom(const Captured& answer);

// Whether it may stand in a file's name: "123.server", "1[2].server".
bool IsPbsJobId(std::string_view id);

}  // namespace overcap
