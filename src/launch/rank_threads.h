// SPDX-License-Identifier: Apache-2.0
// How many threads OpenMP may start in a rank: left alone it starts one per processor in each of them.
#pragma once

#include "sys/variables.h"

namespace overcap {

struct RankCpus {
  int own = 0;     // processors that the rank may use; 0: not known
  int shared = 0;  // processors of the job that all ranks of this node share; 0: not known
};

// OMP_NUM_THREADS of one of `local_ranks` ranks; 0: leave it unset. A rank that is alone on the processors
// that it may use starts as many threads by itself, and what it starts in turn (torchrun, mpirun) can choose.
int RankThreads(const RankCpus& cpus, int local_ranks);

// The processors of the job around this process: what it may use, no more than its control group's quota and
// SLURM_CPUS_ON_NODE in `job_variables` allow. `parent`: asks what the parent may use instead, because a
// launcher may have bound this process to its own share.
int JobCpusHere(const Variables& job_variables, bool parent = false);

// Sets OMP_NUM_THREADS where the user has not. A value that a launch or job around this one has chosen is no
// wish of the user.
void SetThreads(int threads, Variables* variables);

// Whether OMP_NUM_THREADS was chosen by SetThreads and not by the user.
bool ThreadsAreOurs(const Variables& variables);

}  // namespace overcap
