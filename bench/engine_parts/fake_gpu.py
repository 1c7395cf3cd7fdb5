"""A GPU that is not there: passes run on it for their shapes, types, devices and launches, and compute nothing.

torch's fake tensors say where they lie, of what type and how large they are, and refuse to meet one of another device,
to tell a value, or to take a shape from one; a torch without CUDA has them too. Three of its Python bindings open the
device before they ask what the tensor is, so `Bindings` goes around those and is all that is made up.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from demo_server.model import Decoder, ModelShape
from demo_server.operators import Operators

DEVICE = torch.device("cuda", 0)
# What gives memory without writing to it.
MERE_MEMORY = ("empty", "empty_like", "new_empty")


class Bindings(TorchFunctionMode):
    """`x.copy_`, `x[...]` and `x.pin_memory` by the operations that they come to."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is Tensor.copy_:
            return torch.ops.aten.copy_.default(*args, **(kwargs or {}))
        if func is Tensor.__getitem__ and args[0].is_cuda:
            return part_of(*args)
        if func is Tensor.pin_memory:  # what is pinned was made from a buffer of the host, by no operation
            return torch.empty(args[0].shape, dtype=args[0].dtype)
        return func(*args, **(kwargs or {}))


def part_of(x: Tensor, wanted: Any) -> Tensor:
    """x[wanted], where that is whole numbers and slices: a view, as it would be."""
    at = 0
    for each in wanted if isinstance(wanted, tuple) else (wanted,):
        if isinstance(each, slice):
            x = torch.ops.aten.slice.Tensor(x, at, *each.indices(x.shape[at]))
            at += 1
        else:
            assert isinstance(each, int), f"an index on the device: {each}"
            x = torch.ops.aten.select.int(x, at, each)
    return x


@contextmanager
def fake_gpu() -> Iterator[None]:
    """Within it, tensors are fake and may be on the GPU."""
    with FakeTensorMode(), Bindings():
        yield


def model_on_fake_gpu(shape: ModelShape, operators: Operators, dtype: torch.dtype = torch.bfloat16) -> Decoder:
    """A decoder without weights, to be called within `fake_gpu`."""
    with torch.device("meta"):
        model = Decoder(shape, operators).eval()
    for module in list(model.modules()):
        for name, weight in list(module.named_parameters(recurse=False)):
            there = torch.empty(weight.shape, dtype=dtype, device=DEVICE)
            setattr(module, name, nn.Parameter(there, requires_grad=False))
    model.rope = torch.empty(model.rope.shape, device=DEVICE)
    return model


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a launch reads or writes. `storage` tells the memory behind it from all other."""

    device: torch.device
    dtype: torch.dtype
    shape: tuple[int, ...]
    size: int  # in bytes; a tensor that repeats itself is no larger than its memory
    storage: int

    @classmethod
    def of(cls, x: Tensor) -> "Operand":
        memory = x.untyped_storage()
        size = min(x.numel() * x.element_size(), memory.nbytes())
        return cls(x.device, x.dtype, tuple(x.shape), size, memory._cdata)  # noqa: SLF001  # it has no public name


@dataclass(frozen=True, slots=True)
class Launch:
    """An operation that does more than look at a tensor in another way."""

    name: str
    reads: tuple[Operand, ...]
    writes: tuple[Operand, ...]


class Trace(TorchDispatchMode):
    """The launches of what runs within it, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[Launch] = []
        self._held: list[Any] = []  # so that no memory is told by the name of one that is gone

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        out = func(*args, **given)
        reads = tuple(map(Operand.of, tensors((args, [each for name, each in given.items() if name != "out"]))))
        changed = tuple(map(Operand.of, written(func, args, given)))
        known = {operand.storage for operand in (*reads, *changed)}
        writes = changed + tuple(each for each in map(Operand.of, tensors(out)) if each.storage not in known)
        if writes and func.overloadpacket.__name__ not in MERE_MEMORY:
            self.launches.append(Launch(func.overloadpacket.__name__, reads, writes))
            self._held.append((args, given, out))
        return out


def written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[Tensor]:
    """The tensors given to an operation that it changes."""
    for at, parameter in enumerate(func._schema.arguments):  # noqa: SLF001  # no public name either
        if parameter.alias_info is not None and parameter.alias_info.is_write:
            yield from tensors(args[at] if at < len(args) else kwargs.get(parameter.name))


def tensors(held: Any) -> Iterator[Tensor]:
    """All tensors in nested tuples and lists."""
    if isinstance(held, Tensor):
        yield held
    elif isinstance(held, tuple | list):
        for each in held:
            yield from tensors(each)


class Recorder:
    """Captures steps as traces; what replays one does nothing."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []

    def capture(self, compute: Callable[[], None]) -> Callable[[], None]:
        with Trace() as trace:
            compute()
        self.traces.append(trace)
        return lambda: None
