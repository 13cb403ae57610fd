# SPDX-License-Identifier: Apache-2.0
"""Where a process stands among the others that were started with it.

    import overcap
    me = overcap.place()          # rank, world_size, local_rank, local_world_size, node_rank; no torch needed

    import overcap.torch
    world = overcap.torch.setup() # the same, a device, and an initialised process group
"""
from .errors import OvercapError
from .place import Place, place

__all__ = ["OvercapError", "Place", "heartbeat", "place", "__version__"]


def heartbeat(step: "int | None" = None) -> None:
    """In an elastic group: this rank lives, and is at this step. Elsewhere nothing."""
    from .elastic import heartbeat as beat  # sockets are not needed by who only asks for its place

    beat(step)


def __getattr__(name: str) -> str:
    # Looked up when asked for: reading package metadata takes longer than all the rest of this package.
    if name != "__version__":
        raise AttributeError(f"module 'overcap' has no attribute '{name}'")
    from importlib import metadata

    return metadata.version("overcap")
