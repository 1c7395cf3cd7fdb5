"""CUDA graphs: a decode step recorded once and replayed, so that its launches cost the host nothing.

The one room that only a GPU can run. What is captured must read and write tensors that stay where they are, take no
decision on a value of the device, and copy nothing from the host; tests hold the step to that without a GPU.
"""

from collections.abc import Callable

import torch

Compute = Callable[[], None]
Capture = Callable[[Compute], Compute]


def capture_on(device: torch.device) -> Capture | None:
    """How a step is captured on this device; None where it runs as it is written."""
    return CudaGraphs(device).capture if device.type == "cuda" else None


class CudaGraphs:
    """Graphs of one device; they share their working memory, so no two may run at once."""

    def __init__(self, device: torch.device) -> None:
        self._memory = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # of torch

    def capture(self, compute: Compute) -> Compute:
        """Run `compute` once, so that libraries set themselves up, then record it; returns what replays it."""
        now = torch.cuda.current_stream(self._stream.device)
        self._stream.wait_stream(now)
        with torch.cuda.stream(self._stream):
            compute()
        now.wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        # Other threads of the server know nothing of CUDA, but whatever they do must not spoil a capture.
        with torch.cuda.graph(graph, pool=self._memory, stream=self._stream, capture_error_mode="thread_local"):
            compute()
        return graph.replay
