# SPDX-License-Identifier: Apache-2.0
"""What each launcher tells its processes through environment variables. Pure.

The order is that of `overcap rank`: the innermost launcher first. Under mpirun in a batch job the batch step's
SLURM_PROCID says nothing, and Open MPI's daemons are Slurm tasks themselves.
"""
import re
from dataclasses import dataclass
from typing import List, Mapping, Optional, Tuple

from .errors import OvercapError

Environ = Mapping[str, str]


@dataclass(frozen=True)
class Launcher:
    """The names of a launcher's variables, in order of preference."""

    name: str
    rank: str
    world_size: Tuple[str, ...] = ()
    local_rank: Tuple[str, ...] = ()
    local_world_size: Tuple[str, ...] = ()
    node_rank: Tuple[str, ...] = ()
    needs: Tuple[str, ...] = ()  # without these the others say nothing


# The variables that torch.distributed, torchrun and `overcap launch` speak of.
TORCH = Launcher("RANK", "RANK", ("WORLD_SIZE",), ("LOCAL_RANK",), ("LOCAL_WORLD_SIZE",), ("NODE_RANK", "GROUP_RANK"))

# OMPI_COMM_WORLD_NODE_RANK is no number of a node. A shell in a Slurm step may have that step's PMI_RANK, hence Hydra is
# known by its local rank. A batch script has SLURM_PROCID=0 and the whole job's SLURM_NTASKS but no
# SLURM_STEP_NUM_TASKS: it is not one of srun's tasks.
LAUNCHERS = (
    Launcher("OMPI_COMM_WORLD_*", "OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_SIZE",), ("OMPI_COMM_WORLD_LOCAL_RANK",),
             ("OMPI_COMM_WORLD_LOCAL_SIZE",)),
    Launcher("PALS_*", "PALS_RANKID", ("PALS_SIZE", "PMI_SIZE"), ("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"),
             ("PALS_LOCAL_SIZE", "PMI_LOCAL_SIZE"), ("PALS_NODEID",)),
    Launcher("PMI_*", "PMI_RANK", ("PMI_SIZE",), ("MPI_LOCALRANKID",), ("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"),
             needs=("MPI_LOCALRANKID",)),
    Launcher("SLURM_*", "SLURM_PROCID", ("SLURM_STEP_NUM_TASKS",), ("SLURM_LOCALID",), (), ("SLURM_NODEID",),
             needs=("SLURM_STEP_NUM_TASKS",)),
    Launcher("PMI_*", "PMI_RANK", ("PMI_SIZE",), ("PMI_LOCAL_RANK",), ("PMI_LOCAL_SIZE",), needs=("PMI_SIZE",)),
    Launcher("PMIX_*", "PMIX_RANK", ("PMI_SIZE",), ("PMIX_LOCAL_RANK",), ("PMIX_LOCAL_SIZE",)),
)


@dataclass(frozen=True)
class Told:
    """What one launcher's variables say; None where they say nothing."""

    name: str
    rank: int
    world_size: Optional[int] = None
    local_rank: Optional[int] = None
    local_world_size: Optional[int] = None
    node_rank: Optional[int] = None


def told_by(launcher: Launcher, environ: Environ) -> Optional[Told]:
    """None when the launcher is not around us; OvercapError when a variable of it holds no number."""
    rank = _number(environ, (launcher.rank,))
    if rank is None or not all(environ.get(name) for name in launcher.needs):
        return None
    node_rank = _number(environ, launcher.node_rank)
    local_world_size = _number(environ, launcher.local_world_size)
    if launcher.rank == "SLURM_PROCID":
        local_world_size = _slurm_tasks_on(node_rank, environ)
    return Told(launcher.name, rank, _number(environ, launcher.world_size), _number(environ, launcher.local_rank),
                local_world_size, node_rank)


def all_told(environ: Environ) -> List[Told]:
    found = (told_by(launcher, environ) for launcher in LAUNCHERS)
    return [told for told in found if told is not None]


def _number(environ: Environ, names: Tuple[str, ...]) -> Optional[int]:
    for name in names:
        text = environ.get(name, "")
        if text:
            if not re.fullmatch(r"[0-9]{1,9}", text):
                raise OvercapError(f"'{name}' holds '{text}', which is no count; unset it")
            return int(text)
    return None


def _slurm_tasks_on(node: Optional[int], environ: Environ) -> Optional[int]:
    """From '2(x3),1': two tasks on each of three nodes, one on the fourth."""
    text = environ.get("SLURM_STEP_TASKS_PER_NODE", "")
    if node is None or not text:
        return None
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:\(x([0-9]{1,9})\))?", part)
        if match is None:
            raise OvercapError(f"'SLURM_STEP_TASKS_PER_NODE' holds '{text}', which is no list of counts")
        node -= int(match[2] or 1)
        if node < 0:
            return int(match[1])
    return None
