"""What several of these tests need: a real server as a child process, its streams and metrics read from the wire."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
from prometheus_client.parser import text_string_to_metric_families

from demo_server.blocks import BlockPool
from demo_server.engine import Engine, Limits, Runner
from demo_server.metrics import Metrics
from demo_server.scheduler import Policy, Scheduler, Step
from demo_server.sequence import Sequence
from demo_server.text import EOS

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Server:
    """A demo server that answers at `url`."""

    url: str
    process: subprocess.Popen[str]

    def post(self, path: str, body: object) -> httpx.Response:
        assert self.process.poll() is None, "the server has ended"
        return httpx.post(self.url + path, json=body, timeout=PATIENCE_S)

    def get(self, path: str) -> httpx.Response:
        assert self.process.poll() is None, "the server has ended"
        return httpx.get(self.url + path, timeout=PATIENCE_S)

    def metric(self, name: str, model: str = "demo", **labels: str) -> float:
        """The value of one sample, from a scrape."""
        return samples(self.get("/metrics").text)[
            name, frozenset({"model_name": model, "engine": "0", **labels}.items())
        ]


@contextmanager
def running_server(*flags: str) -> Iterator[Server]:
    """Start `python -m demo_server` on a free port, and end it whatever happens."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FIRSTTOKEN_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "demo_server", "--listen", "127.0.0.1:0", "--device", "cpu", *flags],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        yield Server(line.split()[-1], process)
    finally:
        process.kill()
        process.wait(PATIENCE_S)
        process.stdout.close()


def samples(page: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of a metrics page by name and labels; parsing it proves that it can be scraped."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def events(body: str) -> list[str]:
    """The data of each event of a stream."""
    assert body.endswith("\n\n")
    return [part.removeprefix("data: ") for part in body.removesuffix("\n\n").split("\n\n")]


def chunks(body: str) -> list[dict[str, object]]:
    """The JSON of each event before `[DONE]`, which must be the last."""
    *data, done = events(body)
    assert done == "[DONE]"
    return [json.loads(each) for each in data]


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds; fails saying `what` did not happen."""
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, f"in {PATIENCE_S:g} s it never happened that {what}"
        time.sleep(0.01)


class Script:
    """A runner without a model: every sequence is given the same text over and over, or an end where it says EOS."""

    def __init__(
        self, text: bytes = b"abcdefgh", *, end_after: int | None = None, fail_at_step: int | None = None
    ) -> None:
        self.text = text
        self.end_after = end_after
        self.fail_at_step = fail_at_step
        self.steps: list[Step] = []

    def begin(self, step: Step, sequences: Mapping[int, Sequence]) -> Callable[[], dict[int, int]]:
        self.steps.append(step)
        if len(self.steps) == self.fail_at_step:
            raise ZeroDivisionError("the device is gone")
        return lambda: {chunk.sequence_id: self._token(sequences[chunk.sequence_id]) for chunk in step.chunks}

    def _token(self, sequence: Sequence) -> int:
        if self.end_after is not None and sequence.output_tokens >= self.end_after:
            return EOS
        return self.text[sequence.output_tokens % len(self.text)]


def scripted_engine(
    runner: Runner, *, blocks: int = 64, max_batch: int = 4, limits: Limits | None = None, block_size: int = 4
) -> tuple[Engine, BlockPool, Metrics]:
    """An engine, not started, with a small pool."""
    pool = BlockPool(blocks, block_size)
    metrics = Metrics(("demo",))
    engine = Engine(Scheduler(pool, Policy(max_batch)), runner, metrics=metrics, limits=limits or Limits())
    return engine, pool, metrics
