# SPDX-License-Identifier: Apache-2.0
"""A process's place among the others. Pure but for reading os.environ when nothing else is given."""
import os
from dataclasses import asdict, dataclass, field, replace
from typing import Dict, List, Optional

from .errors import OvercapError
from .launchers import TORCH, Environ, Told, all_told, told_by


OWN_RUN_ID = "overcap-"


@dataclass(frozen=True)
class Place:
    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_world_size: int = 1
    node_rank: int = 0  # -1 where nobody can tell: a bare mpirun on hosts with different numbers of ranks
    # The family of variables that said so: "RANK", "OMPI_COMM_WORLD_*", ...; no part of the place itself.
    told_by: str = field(default="none", compare=False)

    def variables(self) -> Dict[str, str]:
        """RANK and its like, as other libraries look for them."""
        return {name.upper(): str(value) for name, value in asdict(self).items() if name != "told_by" and value != -1}


def place(environ: Optional[Environ] = None) -> Place:
    """The caller's place, under whatever started it; a world of one when nothing did.

    RANK and WORLD_SIZE count first: torchrun and `overcap launch` set them, and so do people's own scripts. One
    exception: a world of one around another launcher (`mpirun -n 4` in a job of one rank) gives way to that launcher.
    """
    environ = os.environ if environ is None else environ
    launchers = all_told(environ)
    ours = told_by(TORCH, environ)
    if ours is not None and ours.world_size is not None:
        inner = _filled(launchers[0], launchers[1:], environ) if launchers and ours.world_size == 1 else None
        if inner is None or (inner.world_size or 1) == 1 or _of_torchrun(environ):
            return _placed(_with_local_part(_filled(ours, launchers, environ)))
    if launchers:
        return _placed(_filled(launchers[0], launchers[1:], environ))
    return Place()


def _of_torchrun(environ: Environ) -> bool:
    """Torchrun itself within a launcher. `overcap launch` and `submit` give their runs ids that begin so."""
    return not environ.get("TORCHELASTIC_RUN_ID", OWN_RUN_ID).startswith(OWN_RUN_ID)


def _filled(told: Told, others: List[Told], environ: Environ) -> Told:
    """What is missing is taken from the outer launchers that speak of the same rank of the same world."""
    for other in others:
        if other.rank == told.rank and (told.world_size or other.world_size) == (other.world_size or told.world_size):
            known = {name: value for name, value in asdict(told).items() if value is not None}
            told = replace(other, **known)
    if told.world_size is None and environ.get("WORLD_SIZE", "").isdigit():
        told = replace(told, world_size=int(environ["WORLD_SIZE"]))
    return told


def _with_local_part(told: Told) -> Told:
    """RANK and WORLD_SIZE alone are how containers of one process each are told."""
    if told.local_rank is None and told.local_world_size is None:
        return replace(told, local_rank=0, local_world_size=1)
    return told


def _placed(told: Told) -> Place:
    """Checks what was told."""
    rank, world_size, local_rank, local_world_size = told.rank, told.world_size, told.local_rank, told.local_world_size
    if world_size is None:
        raise OvercapError(f"{told.name} variables name rank {rank} but not how many ranks there are; "
                           "set WORLD_SIZE, or start it with 'overcap launch'")
    if world_size == 1 and local_rank is None:
        local_rank, local_world_size = 0, 1
    if local_rank is None or local_world_size is None:
        raise OvercapError(f"{told.name} variables do not say which rank of this host rank {rank} is; "
                           "set LOCAL_RANK and LOCAL_WORLD_SIZE, or start it with 'overcap launch'")
    if rank >= world_size:
        raise OvercapError(f"{told.name} variables contradict each other: rank {rank} of {world_size}")
    if not local_rank < local_world_size <= world_size:
        raise OvercapError(f"{told.name} variables contradict each other: local rank {local_rank} of "
                           f"{local_world_size}, {world_size} ranks in all")
    node_rank = told.node_rank
    if node_rank is None:
        node_rank = _node_rank(rank, world_size, local_rank, local_world_size)
    return Place(rank, world_size, local_rank, local_world_size, node_rank, told.name)


def _node_rank(rank: int, world_size: int, local_rank: int, local_world_size: int) -> int:
    """The MPIs do not number hosts; with as many ranks on each, the rank itself tells: by host, or dealt round."""
    if world_size % local_world_size != 0:
        return -1
    hosts = world_size // local_world_size
    if rank % local_world_size == local_rank:
        return rank // local_world_size
    return rank % hosts if rank // hosts == local_rank else -1
