"""One vLLM under three pairs of eyes: a sidecar before it, the middleware within, and a sidecar that reads its page.

vLLM's own word on each request is the `llm_request` span that it exports, and its metrics page.
"""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.engines import vllm_install, vllm_server
from tests.engines.agreement import Seen, Trace, post
from tests.engines.vllm_server import PATHS, Engine, asking
from tests.ports import free_ports
from tests.sidecar.process import Process, scraping, sidecar
from tests.sidecar.receiver import Attribute, Receiver, attributes, eventually, receiving

SCRAPE_S = 0.5  # a page costs vLLM's API server milliseconds, and three read it
SOON = {"OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_METRIC_EXPORT_INTERVAL": "500"}

SPEC = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 250ms}
  - {name: tpot, signal: tpot, percentile: 95, threshold: 25ms}
  - {name: answered, signal: availability, target: 99%}
"""

# The names that vLLM's spans use beside those of ours.
PROMPT_TOKENS, COMPLETION_TOKENS = "gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"
OF_A_REQUEST = ("llm_request", "chat", "text_completion")


@dataclass(frozen=True)
class Span:
    """An exported span with plain attributes."""

    name: str
    span_id: bytes
    parent_id: bytes
    about: dict[str, Attribute]

    def number(self, key: str) -> float:
        value = self.about[key]
        assert isinstance(value, int | float)
        return value


def spans_of(receiver: Receiver) -> dict[bytes, Span]:
    """The spans of requests that came to a receiver, by trace; vLLM also exports how it started."""
    found = [span for span in receiver.spans() if span.name.split()[0] in OF_A_REQUEST]
    by_trace = {
        span.trace_id: Span(span.name, span.span_id, span.parent_span_id, attributes(span.attributes)) for span in found
    }
    assert len(by_trace) == len(found), "a request has one span"
    return by_trace


@dataclass(frozen=True)
class Heard:
    """An answer as its client saw it, and the trace it belongs to."""

    trace: Trace
    seen: Seen

    @property
    def usage(self) -> int | None:
        """The server's count of output tokens, where the client was shown one."""
        found = [event["usage"]["completion_tokens"] for _, event in self.seen.events if event.get("usage")]
        return found[0] if found else None


@dataclass(frozen=True)
class Rig:
    """All that watch one vLLM, and where each one's spans go."""

    engine: Engine
    proxy: Process
    middleware: Process
    onlooker: Process
    seen_by: dict[str, Receiver]

    @property
    def watching(self) -> dict[str, Process]:
        return {"proxy": self.proxy, "middleware": self.middleware, "onlooker": self.onlooker}

    def ask(self, kind: str, prompt: str, tokens: int, *, leave_after: int | None = None, **more: object) -> Heard:
        """One request through the proxy, in a trace of its own. `leave_after`: leave once so many events have come."""
        asked = asking(kind, prompt, tokens, **{"model": self.engine.model, **more})
        trace = Trace()
        return Heard(trace, post(self.proxy.proxy, PATHS[kind], asked, trace.header, events=leave_after))

    def spans(self, *heard: Heard, by: tuple[str, ...] = ("proxy", "middleware", "engine")) -> dict[str, list[Span]]:
        """Each one's spans of these requests, in their order."""
        found: dict[str, list[Span]] = {}
        for name in by:
            receiver, traces = self.seen_by[name], [one.trace.id for one in heard]
            eventually(lambda: set(traces) <= spans_of(receiver).keys())  # noqa: B023  called within this turn
            found[name] = [spans_of(receiver)[trace] for trace in traces]
        return found

    def waited_s(self) -> float:
        """How long those on a request's way have waited for a core so far: this thread, the proxy, the API server."""
        ways = ("thread-self", str(self.proxy.popen.pid), str(self.engine.popen.pid))
        return sum(int(Path(f"/proc/{one}/schedstat").read_text().split()[1]) for one in ways) / 1e9

    def settle(self) -> None:
        """Wait until the engine is idle, and whoever reads its page has read so."""
        eventually(lambda: self.engine.metrics()["vllm:num_requests_running"] == 0)
        time.sleep(3 * SCRAPE_S)


@contextlib.contextmanager
def watched(folder: Path) -> Iterator[Rig]:
    """A vLLM, which is installed first where it is not, and all that watch it."""
    vllm_install.main()
    (folder / "slo.yaml").write_text(SPEC)
    with contextlib.ExitStack() as stack:
        seen_by = {name: stack.enter_context(receiving()) for name in ("proxy", "middleware", "engine")}
        page = free_ports(1)[0]
        engine = stack.enter_context(
            vllm_server.serving(
                folder,
                *("--middleware", "sidecar.middleware.FirstTokenMiddleware"),
                *("--otlp-traces-endpoint", f"{seen_by['engine'].url}/v1/traces"),
                OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/protobuf",
                FIRSTTOKEN_ADMIN=f"127.0.0.1:{page}",
                FIRSTTOKEN_OTLP_ENDPOINT=seen_by["middleware"].url,
                FIRSTTOKEN_SCRAPE_INTERVAL=f"{SCRAPE_S}",
                **SOON,
            )
        )
        every = ("--scrape-interval", f"{SCRAPE_S}")
        endpoint = ("--otlp-endpoint", seen_by["proxy"].url)
        proxy = stack.enter_context(sidecar(engine.url, *endpoint, *every, cwd=folder, **SOON))
        onlooker = stack.enter_context(scraping(f"{engine.url}/metrics", *every, cwd=folder))
        middleware = Process(proxy.popen, engine.port, page)
        rig = Rig(engine, proxy, middleware, onlooker, seen_by)
        for kind in ("chat", "completions"):  # what is slow once is nobody's measure
            rig.ask(kind, "warm", 8, stream=True)
        yield rig
