# SPDX-License-Identifier: Apache-2.0
"""PyTorch's process group and device, under every launcher and none.

    import overcap.torch
    world = overcap.torch.setup(seed=1)
    model = torch.nn.parallel.DistributedDataParallel(model.to(world.device))
    ...
    overcap.torch.cleanup()
"""
import os
import random
import sys
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, Dict, Iterator, Optional, Union

import torch
import torch.distributed as dist

from .errors import OvercapError
from .meeting import Address, PortTeller, known_address, launch_name, learn_port
from .place import Place, place

__all__ = ["World", "setup", "ensure_init_process_group", "cleanup"]

MEETING_SECONDS = 600.0  # for the ranks to find each other, when no timeout was given
Seconds = Union[float, timedelta, None]


@dataclass(frozen=True)
class World(Place):
    device: torch.device = torch.device("cpu")
    backend: str = "gloo"


def setup(backend: Optional[str] = None, device: Union[str, torch.device, None] = None, timeout: Seconds = None,
          seed: Optional[int] = None) -> World:
    """This rank's place and device, with the process group initialised and the device made current.

    device: by default this rank's GPU (cuda, then xpu), else the CPU. backend: by default nccl, xccl (ccl where only
    that exists) or gloo, as the device needs. timeout: seconds for the meeting of the ranks and for each collective;
    torch's own when not given. seed: Python, NumPy and torch get seed + rank.

    RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, NODE_RANK, MASTER_ADDR and MASTER_PORT are put into os.environ
    for other libraries. Called again it does not initialise again. Raises OvercapError.
    """
    if not dist.is_available():
        raise OvercapError("this torch was built without torch.distributed")
    me = place()
    where = _device(device, me.local_rank)
    by = dist.get_backend() if dist.is_initialized() else backend or _backend_for(where)
    _make_current(where)
    if dist.is_initialized():
        _check_same(me)
    else:
        address = _init(me, by, _seconds(timeout))
        os.environ.update(me.variables(), MASTER_ADDR=address[0], MASTER_PORT=str(address[1]))
    if seed is not None:
        _seed(seed + me.rank)
    return World(**asdict(me), device=where, backend=by)


def ensure_init_process_group(backend: Optional[str] = None, timeout: Seconds = None) -> World:
    """Initialises the process group unless somebody has; may be called as often as one likes."""
    return setup(backend=backend, timeout=timeout)


def cleanup() -> None:
    """Takes the process group down; may be called without one."""
    if dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()


def _device(wanted: Union[str, torch.device, None], local_rank: int) -> torch.device:
    try:
        device = torch.device(wanted if wanted is not None else _best_kind())
    except RuntimeError as error:
        raise OvercapError(f"'{wanted}' is no device: {str(error).splitlines()[0]}") from None
    if device.type not in ("cuda", "xpu"):
        return device
    kind = getattr(torch, device.type, None)  # older torch has no xpu
    count = kind.device_count() if kind is not None else 0
    if device.index is not None and device.index < count:
        return device
    if device.index is not None:
        raise OvercapError(f"there is no '{device}': {count} {device.type} devices are visible to local rank {local_rank}")
    if count == 0:
        raise OvercapError(f"no {device.type} device is visible to local rank {local_rank}")
    return torch.device(device.type, local_rank % count)


def _best_kind() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "xpu" if hasattr(torch, "xpu") and torch.xpu.is_available() else "cpu"


def _make_current(device: torch.device) -> None:
    if device.type in ("cuda", "xpu"):
        getattr(torch, device.type).set_device(device)


def _backend_for(device: torch.device) -> str:
    if device.type == "cuda" and dist.is_nccl_available():
        return "nccl"
    return _xpu_backend() if device.type == "xpu" else "gloo"


def _xpu_backend() -> str:
    if getattr(dist, "is_xccl_available", lambda: False)():
        return "xccl"
    try:
        import oneccl_bindings_for_pytorch  # noqa: F401  (importing it registers ccl)
    except ImportError:
        raise OvercapError("this torch has neither xccl nor ccl (oneccl_bindings_for_pytorch) for xpu") from None
    return "ccl"


def _seconds(timeout: Seconds) -> Optional[float]:
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if seconds is not None and seconds <= 0:
        raise OvercapError(f"a timeout of {seconds:g} s is none; leave it out for torch's own")
    return seconds


def _init(me: Place, backend: str, seconds: Optional[float]) -> Address:
    options: Dict[str, Any] = {} if seconds is None else {"timeout": timedelta(seconds=seconds)}
    address = known_address(me, os.environ)
    try:
        if address is None:
            options.update(store=_store_on_this_host(me, seconds or MEETING_SECONDS))
            address = "127.0.0.1", options["store"].port
        with _meeting_at(address):
            # An address from outside is left to torch, which knows who holds the store under torchrun.
            dist.init_process_group(backend, rank=me.rank, world_size=me.world_size, **options)
    except OvercapError:
        raise
    except (RuntimeError, ValueError, OSError) as error:
        where = f" at {address[0]}:{address[1]}" if address else ""
        raise OvercapError(f"rank {me.rank} of {me.world_size} could not join the {backend} group{where}: "
                           + " ".join(str(error).split())) from error
    return address


@contextmanager
def _meeting_at(address: Address) -> Iterator[None]:
    """MASTER_ADDR and MASTER_PORT say so, for a while."""
    before = {name: os.environ.get(name) for name in ("MASTER_ADDR", "MASTER_PORT")}
    os.environ.update(MASTER_ADDR=address[0], MASTER_PORT=str(address[1]))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def _store_on_this_host(me: Place, seconds: float) -> "dist.TCPStore":
    """A store at a free port that rank 0 holds. No other program can take the port between choice and use."""
    name = launch_name(me, os.environ) if me.world_size > 1 else ""
    teller = PortTeller(name) if name and me.rank == 0 else None
    port = 0 if me.rank == 0 else learn_port(name, me.rank, seconds)
    store = dist.TCPStore("127.0.0.1", port, world_size=me.world_size, is_master=me.rank == 0,
                          timeout=timedelta(seconds=seconds), wait_for_workers=False)
    if teller is not None:
        teller.tell(store.port, me.world_size - 1, seconds)
    return store


def _check_same(me: Place) -> None:
    theirs = (dist.get_rank(), dist.get_world_size())
    if theirs != (me.rank, me.world_size):
        raise OvercapError(f"the process group has this process as rank {theirs[0]} of {theirs[1]}, its environment as "
                           f"{me.rank} of {me.world_size}; call overcap.torch.setup() in place of init_process_group()")


def _seed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)  # every kind of device too
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed % 2**32)
