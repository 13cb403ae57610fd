// SPDX-License-Identifier: Apache-2.0
// The flags of torchrun 2.15, and how `overcap launch` takes each of them. tests/cli/test_torchrun.py holds
// the table against torchrun's own --help.
#pragma once

#include <string>

#include "cli/command.h"
#include "sys/variables.h"

namespace overcap::cli {

enum class TorchrunUse {
  kBoth,     // a launch without an elastic group has it too
  kGroup,    // asks for an elastic group
  kIgnored,  // accepted with a note: it has no effect here
};

struct TorchrunFlag {
  Flag flag;
  TorchrunUse use = TorchrunUse::kGroup;
  bool variable = true;  // PET_NAME in the environment says it too
};

inline constexpr TorchrunFlag kTorchrunFlags[] = {
    {{"--nnodes", "", "N|MIN:MAX", "hosts to use; all of them. A range: an elastic group"},
     TorchrunUse::kBoth},
    {{"--nproc-per-node", "", "P", "elastic: ranks of this node: a number, gpu, cpu, xpu, auto"}},
    {{"--rdzv-backend", "", "WHICH", "torchrun's: c10d, etcd, etcd-v2 or static"}},
    {{"--rdzv-endpoint", "", "HOST:PORT", "torchrun's: where the rendezvous is"}},
    {{"--rdzv-id", "", "ID", "torchrun's: the name of the job"}},
    {{"--rdzv-conf", "", "K=V,...", "torchrun's: last_call_timeout and join_timeout are obeyed"}},
    {{"--standalone", "", "", "torchrun's: this machine alone"}},
    {{"--max-restarts", "", "N", "elastic: start all again so often after a rank failed; 0"}},
    {{"--monitor-interval", "", "S", "torchrun's: no effect, nothing is polled"}, TorchrunUse::kIgnored},
    {{"--start-method", "", "HOW", "torchrun's: no effect"}, TorchrunUse::kIgnored},
    {{"--event-log-handler", "", "NAME", "torchrun's: no effect"}, TorchrunUse::kIgnored},
    {{"--role", "", "NAME", "torchrun's: ROLE_NAME of the ranks; default"}},
    {{"--module", "-m", "", "the command is a Python module"}, TorchrunUse::kBoth},
    {{"--no-python", "", "", "the command is no Python script"}, TorchrunUse::kBoth},
    {{"--run-path", "", "", "torchrun's: the command is a Python script"}, TorchrunUse::kBoth},
    {{"--log-dir", "", "FOLDER", "as --logs, with a folder of its own below for each launch"},
     TorchrunUse::kBoth},
    {{"--redirects", "-r", "WHAT", "torchrun's: not on the terminal: 1, 2, 3, or 0:3,1:2 by local rank"}},
    {{"--tee", "-t", "WHAT", "on the terminal: 0 (rank 0), all, none; torchrun's 1, 2, 3, 0:3"},
     TorchrunUse::kBoth},
    {{"--log-line-prefix-template", "", "TEXT", "torchrun's: what precedes each line of --tee"}},
    {{"--local-ranks-filter", "", "LIST", "torchrun's: show these local ranks only: 0,1"}},
    {{"--duplicate-stdout-filters", "", "LIST", "torchrun's: no effect"}, TorchrunUse::kIgnored},
    {{"--duplicate-stderr-filters", "", "LIST", "torchrun's: no effect"}, TorchrunUse::kIgnored},
    {{"--node-rank", "", "N", "elastic: the place of this node among the others"}},
    {{"--master-addr", "", "HOST", "torchrun's: the host of rank 0, where the agents meet"}},
    {{"--master-port", "", "PORT", "MASTER_PORT of the ranks; a free one"}, TorchrunUse::kBoth},
    {{"--local-addr", "", "ADDRESS", "elastic: by which other nodes reach this one"}},
    {{"--logs-specs", "", "NAME", "torchrun's: no effect"}, TorchrunUse::kIgnored, false},
    {{"--numa-binding", "", "HOW", "torchrun's: no effect; --cpu-bind binds"}, TorchrunUse::kIgnored, false},
    {{"--signals-to-handle", "", "LIST",
      "torchrun's: SIGUSR1,...: they stop the ranks, which get them first"}},
    {{"--shutdown-timeout", "", "S", "as --grace, in seconds"}, TorchrunUse::kBoth},
    {{"--virtual-local-rank", "", "", "torchrun's: LOCAL_RANK is 0, each rank sees its own GPU"}},
    {{"--print-completion", "", "SHELL", "as 'overcap completion SHELL'"}, TorchrunUse::kBoth, false},
};

// `args` with what PET_* variables say, as torchrun reads them: a flag on the line counts more. Where -n or
// --rdzv says what to run they are not read.
Result<Args> WithTorchrunVariables(Args args, const Variables& variables);

// "--start-method, --logs-specs: no effect here", of those that were given; "" for none.
std::string IgnoredFlags(const Args& args);

// Whether a flag that was given asks for an elastic group.
bool AsksAsTorchrun(const Args& args);

}  // namespace overcap::cli
