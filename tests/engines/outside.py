"""A load by a client that knows nothing of us, and its numbers beside the sidecar's for the same requests.

`python -m tests.engines.outside AIPERF` starts llama.cpp, a sidecar before it and the program AIPERF (NVIDIA's aiperf),
which times every answer itself. The percentiles of both stand side by side; 1 when any differs by more than 5 %. Single
requests are joined by the X-Request-Id that aiperf sends and the sidecar's spans keep. Of its TTFT is taken off what it
needed to connect and send, which is before a request is whole and so no part of ours.
"""

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from slo.signals import LATENCY_TPOT, LATENCY_TTFT, OUTPUT_TOKENS, REQUEST_ID
from tests.engines.agreement import spans_of
from tests.engines.beside import Beside, beside
from tests.engines.llamacpp_model import write_model, write_tokenizer
from tests.engines.llamacpp_server import MODEL, running
from tests.sidecar.process import environment
from tests.sidecar.receiver import Attribute, eventually

PERCENTILES = (50, 90, 95, 99)
SHARE = 0.05
PATIENCE_S = 900

Told = dict[str, dict[str, dict[str, float]]]


def run_aiperf(program: str, port: int, folder: Path, *, requests: int, concurrency: int) -> list[Told]:
    """The records of a load of streamed chat requests, one a request."""
    command = [
        program, "profile", "--model", MODEL, "--url", f"http://127.0.0.1:{port}", "--endpoint-type", "chat",
        "--streaming", "--tokenizer", str(write_tokenizer(folder / "tokenizer")), "--use-server-token-count",
        "--use-legacy-max-tokens", "--concurrency", str(concurrency), "--request-count", str(requests),
        "--isl", "100", "--osl", "100", "--extra-inputs", "ignore_eos:true", "--random-seed", "1",
        "--workers-max", "1", "--record-processors", "1", "--no-server-metrics", "--no-gpu-telemetry",
        "--ui", "none", "--artifact-dir", str(folder / "aiperf"),
    ]  # fmt: skip
    log = folder / "aiperf.log"
    with log.open("w") as output:
        ended = subprocess.run(command, env=environment(), stdout=output, stderr=output, timeout=PATIENCE_S)
    if ended.returncode:
        raise SystemExit(f"aiperf ended with {ended.returncode}:\n{log.read_text()[-3000:]}")
    return [json.loads(line) for line in (folder / "aiperf" / "profile_export.jsonl").read_text().splitlines()]


def sidecars(watched: Beside, told: Sequence[Told]) -> list[dict[str, Attribute]]:
    """The attributes of the sidecar's spans of these requests, in their order."""

    def by_id() -> dict[Attribute, dict[str, Attribute]]:
        return {of.get(REQUEST_ID): of for _, of in spans_of(watched.receiver).values()}  # type: ignore[misc]

    wanted = [str(each["metadata"]["x_request_id"]) for each in told]
    eventually(lambda: set(wanted) <= by_id().keys())
    found = by_id()
    return [found[each] for each in wanted]


def compare(title: str, theirs_ms: Sequence[float], ours_ms: Sequence[float]) -> bool:
    """Print both columns; whether every line is within 5 %."""
    lines: list[tuple[str, Callable[[Sequence[float]], float]]] = [("mean", lambda v: float(np.mean(v)))]
    lines += [(f"p{p}", lambda v, p=p: float(np.percentile(v, p))) for p in PERCENTILES]  # type: ignore[misc]
    agree = True
    for name, of in lines:
        apart = of(ours_ms) / of(theirs_ms) - 1
        agree = agree and abs(apart) <= SHARE
        print(f"{title:5} {name:5} {of(theirs_ms):10.3f} {of(ours_ms):10.3f} {apart:+8.2%}")
    singly = [abs(ours / theirs - 1) for ours, theirs in zip(ours_ms, theirs_ms, strict=True) if theirs]
    print(f"{title:5} of single requests: median {np.median(singly):.2%}, p99 {np.percentile(singly, 99):.2%} apart")
    return agree


def value(metrics: dict[str, dict[str, float]], name: str) -> float:
    """One of aiperf's metrics of a request; times in milliseconds."""
    return metrics[name]["value"]


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.engines.outside", description=__doc__.partition("\n")[0])
    parser.add_argument("program", metavar="AIPERF", help="path of the aiperf program, from an environment of its own")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--concurrency", type=int, default=2)
    told_to = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running(write_model(Path(name) / "tiny.gguf")) as engine:
        folder = Path(name)
        with beside(engine, folder) as watched:
            told = run_aiperf(
                told_to.program, watched.port, folder, requests=told_to.requests, concurrency=told_to.concurrency
            )
            spans = sidecars(watched, told)
    metrics = [each["metrics"] for each in told]
    same_tokens = [of[OUTPUT_TOKENS] for of in spans] == [value(of, "usage_completion_tokens") for of in metrics]
    print(f"{len(told)} requests, output tokens {'equal' if same_tokens else 'DIFFER'}")
    print(f"{'':11} {'aiperf ms':>10} {'sidecar ms':>10} {'differs':>8}")
    first_ms = [value(of, "time_to_first_token") - value(of, "http_req_sending") for of in metrics]
    agree = [
        compare("TTFT", first_ms, [1e3 * float(str(of[LATENCY_TTFT])) for of in spans]),
        compare(
            "TPOT",
            [value(of, "inter_token_latency") for of in metrics],
            [1e3 * float(str(of[LATENCY_TPOT])) for of in spans],
        ),
    ]
    return 0 if same_tokens and all(agree) else 1


if __name__ == "__main__":
    raise SystemExit(main())
