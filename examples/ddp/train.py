#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training in one file: on the GPUs where there are any, else on the CPU.

    overcap launch python train.py --steps 100      every GPU of the allocation, on every node
    overcap launch -n 4 python train.py             four ranks, wherever
    mpirun -n 4 python train.py                     the same under another launcher
    python train.py                                 one process

Each rank draws its own data; DistributedDataParallel averages the gradients, so all ranks hold the same weights.
"""
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import overcap.torch


def batch(size, device):
    """Points of a line with some noise: y = 3 x + 1."""
    x = torch.rand(size, 1, device=device)
    return x, 3 * x + 1 + 0.01 * torch.randn(size, 1, device=device)


def train(world, steps, batch_size):
    model = DistributedDataParallel(torch.nn.Linear(1, 1).to(world.device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for step in range(steps):
        x, y = batch(batch_size, world.device)
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if world.rank == 0 and (step % 20 == 0 or step == steps - 1):
            print(f"step {step} loss {loss.item():.5f}", flush=True)
    return model.module


def same_on_all_ranks(tensor):
    low, high = tensor.clone(), tensor.clone()
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    return bool((low == high).all())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64, help="of each rank")
    parser.add_argument("--device", help="cpu or cuda; by default whatever is there")
    words = parser.parse_args()
    world = overcap.torch.setup(device=words.device, seed=1)
    print(f"rank {world.rank} of {world.world_size} on {world.device} by {world.backend}", flush=True)
    model = train(world, words.steps, words.batch_size)
    same = same_on_all_ranks(model.weight.detach())
    if world.rank == 0:
        line = f"y = {model.weight.item():.2f} x + {model.bias.item():.2f}"
        print(f"{line}; the same on all ranks: {'yes' if same else 'NO'}", flush=True)
    overcap.torch.cleanup()


if __name__ == "__main__":
    main()
