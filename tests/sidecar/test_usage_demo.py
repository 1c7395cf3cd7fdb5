"""`--inject-usage` before a real engine: the demo server, asked and not, must look the same to a client."""

import http.client
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import orjson
import pytest

from slo.signals import KV_OCCUPANCY, TOKENS, USAGE_ASKED
from tests.demo_server.support import Server, running_server
from tests.sidecar.process import START_S, Process, sidecar

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


@pytest.fixture(scope="module")
def demo() -> Iterator[Server]:
    with running_server("--seed", "3") as server:
        yield server


def body(path: str, **members: object) -> bytes:
    prompt: dict[str, object] = (
        {"messages": [{"role": "user", "content": "one two three"}]} if path == CHAT else {"prompt": "one two three"}
    )
    fields = {"model": "demo", "stream": True, "max_tokens": 12, "temperature": 0}
    return orjson.dumps(prompt | fields | members)


def stream(port: int, path: str, ask: bytes) -> tuple[list[str], bytes]:
    """An answer's head and body, without what differs from one request to the next: ids, times, dates."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    try:
        connection.request("POST", path, body=ask, headers={"Content-Type": "application/json"})
        answer = connection.getresponse()
        fields = [
            f"{name}: {value}" for name, value in answer.getheaders() if name.lower() not in ("date", "x-request-id")
        ]
        text = re.sub(rb'"id":"[^"]*"', b'"id":""', answer.read())
        return [str(answer.status), *fields], re.sub(rb'"created":\d+', b'"created":0', text)
    finally:
        connection.close()


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + START_S
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def total(process: Process, name: str, label: str) -> float:
    """The sum of a counter's series that carry `label`, over all models."""
    return sum(value for key, value in process.metrics().items() if key.split()[0] == name and label in key.split())


def hidden(process: Process) -> float:
    return total(process, USAGE_ASKED.prometheus, "reason=hidden")


def output_tokens(process: Process) -> float:
    return total(process, TOKENS.prometheus, "type=output")


def test_auto_makes_counts_exact_and_changes_no_byte(demo: Server, tmp_path: Path) -> None:
    port = int(demo.url.rpartition(":")[2])
    with sidecar(demo.url, "--scrape-interval", "0.2", cwd=tmp_path) as process:
        until(lambda: any(name.startswith(KV_OCCUPANCY.prometheus) for name in process.metrics()))
        for path in (CHAT, COMPLETIONS):
            direct = stream(port, path, body(path))
            counted = [hidden(process)]
            for _ in range(3):
                before = output_tokens(process)
                assert stream(process.proxy, path, body(path)) == direct
                until(lambda before=before: output_tokens(process) > before)  # type: ignore[misc]
                counted.append(hidden(process))
            assert [number - counted[0] for number in counted] == [0, 0, 1, 2]
            assert output_tokens(process) - before == 12


def test_a_client_that_asks_sees_its_chunk(demo: Server, tmp_path: Path) -> None:
    port = int(demo.url.rpartition(":")[2])
    ask = body(CHAT, stream_options={"include_usage": True})
    with sidecar(demo.url, "--inject-usage", "on", cwd=tmp_path) as process:
        direct = stream(port, CHAT, ask)
        assert b'"choices":[],"usage"' in direct[1]
        assert stream(process.proxy, CHAT, ask) == direct
        assert stream(process.proxy, CHAT, body(CHAT)) == stream(port, CHAT, body(CHAT))
        assert hidden(process) == 1


def test_an_sdk_that_takes_compressed_answers_is_counted_exactly_too(demo: Server, tmp_path: Path) -> None:
    with sidecar(demo.url, "--inject-usage", "on", cwd=tmp_path) as process, httpx.Client(timeout=START_S) as client:
        seen = []
        for _ in range(3):
            answer = client.post(f"http://127.0.0.1:{process.proxy}{CHAT}", content=body(CHAT))
            assert answer.request.headers["accept-encoding"].startswith("gzip")
            seen.append(answer.text.count("usage"))
        assert seen == [0, 0, 0]
        assert hidden(process) == 2
