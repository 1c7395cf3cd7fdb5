"""What a CUDA graph does, on the CPU: every operation of a step is written down once, and replayed on the same tensors.

A replay knows nothing of the Python that made the tape. So a step that decides anything on a value, reads one, or takes
a tensor that was made for one call only, gives wrong tokens here as it would on a GPU, or is refused as there.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

Compute = Callable[[], None]

# Operations that ask the device for a value, have a shape that depends on one, or bring one from the host.
UNCAPTURABLE = (
    "_local_scalar_dense",
    "equal",
    "is_nonzero",
    "item",
    "lift_fresh",
    "masked_select",
    "nonzero",
    "unique",
)


class Tape(TorchDispatchMode):
    """One step's operations; `launched` are those that would be a launch on a GPU, for they are no mere views."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[str] = []
        self._calls: list[tuple[Callable[..., Any], Any, Any, list[Tensor]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert not any(name == bad or name.startswith(f"{bad}_") for bad in UNCAPTURABLE), f"{name} in a captured step"
        given = kwargs or {}
        out = func(*args, **given)
        returned = func._schema.returns
        is_view = any(each.alias_info is not None and not each.alias_info.is_write for each in returned)
        if not is_view:
            self.launched.append(name)
            is_fresh = all(each.alias_info is None for each in returned)
            self._calls.append((func, args, given, list(_tensors(out)) if is_fresh else []))
        return out

    @torch.inference_mode()
    def replay(self) -> None:
        """Do it all again."""
        for func, args, kwargs, outs in self._calls:
            for held, new in zip(outs, _tensors(func(*args, **kwargs)), strict=False):
                held.copy_(new)


class Recorder:
    """Captures steps onto tapes; counts how often each was replayed."""

    def __init__(self) -> None:
        self.tapes: list[Tape] = []
        self.replays = 0

    def capture(self, compute: Compute) -> Compute:
        tape = Tape()
        with tape:
            compute()
        self.tapes.append(tape)

        def replay() -> None:
            self.replays += 1
            tape.replay()

        return replay


def _tensors(out: Any) -> Iterable[Tensor]:
    return [each for each in (out if isinstance(out, tuple | list) else (out,)) if isinstance(each, Tensor)]
