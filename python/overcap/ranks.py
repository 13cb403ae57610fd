# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a torch process group decide together. Without torch, or without a group, a rank decides alone."""
import sys
from typing import Any

from .place import place


def group() -> Any:
    """torch.distributed where a group of several ranks is there, else None. Never imports torch."""
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist is None or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() < 2:
        return None
    return dist


def rank() -> int:
    dist = group()
    return int(dist.get_rank()) if dist is not None else place().rank


def decides() -> bool:
    """Whether this rank's word is what of_rank_0 gives."""
    dist = group()
    return dist is None or dist.get_rank() == 0


def largest(value: int) -> int:
    """The largest that any rank has. All ranks must call it."""
    dist = group()
    if dist is None:
        return value
    tensor = _number(dist, value)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return int(tensor.item())


def of_rank_0(value: int) -> int:
    """What rank 0 has; without a group one's own. All ranks must call it."""
    dist = group()
    if dist is None:
        return value
    tensor = _number(dist, value)
    dist.broadcast(tensor, src=0)
    return int(tensor.item())


def _number(dist: Any, value: int) -> Any:
    return sys.modules["torch"].tensor([value], dtype=sys.modules["torch"].int64, device=device_of(dist.get_backend()))


def device_of(backend: str) -> str:
    """Where a tensor must be for a group of that backend; "cpu:gloo,cuda:nccl" has both."""
    if "gloo" in backend or "mpi" in backend:
        return "cpu"
    if "nccl" in backend:
        return "cuda"  # the current one
    return "xpu" if "ccl" in backend else "cpu"
