#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training that loses nothing when it is stopped: it saves, and the next start goes on from there.

    overcap submit --requeue -n 2 -- python train.py                      preempted, it is started again by itself
    OVERCAP_STATE_DIR=state overcap launch -n 2 python train.py           kill -TERM it, and start it again
    OVERCAP_STATE_DIR=state python train.py                               one process
"""
from overcap import checkpoint  # first of all: importing torch takes seconds in which a signal would end us

import argparse
import os
import time

import torch
from torch.nn.parallel import DistributedDataParallel

import overcap.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--save-every", type=int, default=100, help="steps; for what comes without a warning")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds of work that a step pretends to have")
    words = parser.parse_args()
    world = overcap.torch.setup(device="cpu" if not torch.cuda.is_available() else None, seed=1)
    model = torch.nn.Linear(1, 1).to(world.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    saved = checkpoint.load()
    if saved is not None:
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    first = saved["step"] if saved is not None else 0
    parallel = DistributedDataParallel(model)

    def state(step):
        return {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}

    if world.rank == 0:
        print(f"attempt {os.environ.get('OVERCAP_ATTEMPT', '1')} begins at step {first}", flush=True)
    for step in range(first, words.steps):
        x = torch.rand(64, 1, device=world.device)
        loss = torch.nn.functional.mse_loss(parallel(x), 3 * x + 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(words.pause)
        checkpoint.exit_if_asked(lambda: state(step + 1), every=5)  # each 5th step: one small all_reduce
        if (step + 1) % words.save_every == 0:
            checkpoint.save(state(step + 1))
    if world.rank == 0:
        print(f"done after step {words.steps}: y = {model.weight.item():.2f} x + {model.bias.item():.2f}", flush=True)
    overcap.torch.cleanup()


if __name__ == "__main__":
    main()
