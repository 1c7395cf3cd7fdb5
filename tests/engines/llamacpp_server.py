"""llama.cpp's own server as a process, on one thread, and what it says of itself.

`python -m tests.engines.llamacpp_server MODEL PORT SLOTS` serves until its standard input ends, so that it outlives
nobody. `running` starts that, and ends it by its id.
"""

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]
MODEL = "tiny"
CONTEXT = 2048
"""Tokens of one slot."""
START_S = 60.0

Json = dict[str, Any]

KINDS = ("chat", "completions", "native")


def ask(kind: str, *, tokens: int, words: int = 8, **more: object) -> tuple[str, Json]:
    """Path and body of a request for so many tokens after a prompt of so many words, the same text every time."""
    prompt = "the cat and " * (words // 3) + "it " * (words % 3)
    asked: Json = {"stream": True, "ignore_eos": True, "temperature": 0, "cache_prompt": False, **more}
    match kind:
        case "chat":
            messages = [{"role": "user", "content": prompt}]
            return "/v1/chat/completions", {"messages": messages, "max_tokens": tokens, **asked}
        case "completions":
            return "/v1/completions", {"prompt": prompt, "max_tokens": tokens, **asked}
        case _:
            return "/completion", {"prompt": prompt, "n_predict": tokens, **asked}


@dataclass(frozen=True, slots=True)
class Timings:
    """What the server says of one request, in its last event."""

    input_tokens: int
    output_tokens: int
    prefill_s: float
    tpot_s: float

    @classmethod
    def of(cls, last: Mapping[str, Any]) -> "Timings":
        told = last["timings"]
        return cls(
            told["prompt_n"] + told["cache_n"],
            told["predicted_n"],
            told["prompt_ms"] / 1e3,
            told["predicted_per_token_ms"] / 1e3,
        )


@dataclass(frozen=True, slots=True)
class Engine:
    """A running server."""

    popen: subprocess.Popen[str]
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=START_S)
        with contextlib.closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, body
            return body

    def metrics(self) -> dict[str, float]:
        """Its metrics page, by name without the prefix."""
        families = text_string_to_metric_families(self.get("/metrics").decode())
        return {sample.name.removeprefix("llamacpp:"): sample.value for each in families for sample in each.samples}

    def busy(self) -> list[Json]:
        """Its slots at work."""
        return [slot for slot in json.loads(self.get("/slots")) if slot["is_processing"]]

    def cells(self) -> int:
        """The tokens whose keys and values its slots at work hold."""
        return sum(slot["n_prompt_tokens"] for slot in self.busy())


@contextlib.contextmanager
def running(model: Path, *, slots: int = 2, port: int = 0) -> Iterator[Engine]:
    """A server of `model` that answers; gone afterwards, whatever happened."""
    command = [sys.executable, "-m", "tests.engines.llamacpp_server", str(model), str(port), str(slots)]
    with (
        (model.parent / "llamacpp.log").open("a") as log,
        subprocess.Popen(
            command,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as popen,
    ):
        assert popen.stdout is not None
        try:
            line = popen.stdout.readline()
            assert line.startswith("listening on http://127.0.0.1:"), f"{line!r}: see {log.name}"
            yield Engine(popen, int(line.rpartition(":")[2]))
        finally:
            popen.kill()


def serve(model: Path, port: int, slots: int, *, metrics: bool = True, tell_slots: bool = True) -> None:
    """Serve until standard input ends; the last two are the pages that it has."""
    import xllamacpp

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model)
    parameters.model_alias = {MODEL}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = slots
    parameters.n_ctx = slots * CONTEXT
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    parameters.endpoint_metrics, parameters.endpoint_slots = metrics, tell_slots
    # Weights of no meaning draw the end of a text as readily as any token: one answer in four would be cut short.
    parameters.sampling.ignore_eos = True
    server = xllamacpp.Server(parameters)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()
    os._exit(0)  # its own shutdown waits for every answer


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
