"""The demo as data: its contract, its incidents, how long each part lasts, and the command of each process.

What makes healthy clearly good and an incident clearly bad on two busy cores: a step of the engine is padded to 20 ms
although it computes for a few, so a machine five times as busy changes nothing; a healthy request has its first token
after some 40 ms and a token each 20 ms, under a tenth of the TTFT limit and under half of the TPOT limit; every tier
needs a quarter of a minute's requests (a twentieth, for availability) to be bad, and ten of them, so that one hiccup
pages nobody. An incident makes nearly all requests bad.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from firsttoken.errors import UsageError
from firsttoken.processes import Command

SERVICE = "demo"
MODEL = "demo-llama"
DEFAULT_SECONDS = 120
MIN_SECONDS, MAX_SECONDS = 30, 900
PERIOD_S, LONG_S, SHORT_S = 600, 60, 15
TICK_S = 2
EXPORT_MS = 2000
# Longer than an incident: who waits gets an answer in the end, and every latency of the story has a value.
PATIENCE_S = 60
GROUP_WAIT, GROUP_INTERVAL = "1s", "5s"

SLO_YAML = f"""\
# The demo's contract. Its windows are minutes instead of weeks, so that an incident, its page and its end fit into the
# time it takes to watch them; everything else is as in production.
service: {SERVICE}
objectives:
  - name: ttft
    signal: ttft
    percentile: 95
    threshold: 500ms
    window: 10m
    alerts: {{tiers: [{{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}}]}}
  - name: tpot
    signal: tpot
    percentile: 95
    threshold: 50ms
    window: 10m
    alerts: {{tiers: [{{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}}]}}
  - name: answered
    signal: availability
    target: 99%
    window: 10m
    alerts: {{tiers: [{{name: fast, budget: 50%, long: 60s, short: 15s, notify: page}}]}}
  - name: kv-headroom
    signal: kv_occupancy
    threshold: 90%
    target: 90%
    window: 10m
    alerts: {{tiers: [{{name: fast, budget: 50%, long: 60s, short: 15s, notify: ticket}}]}}
"""


@dataclass(frozen=True, slots=True)
class Incident:
    """A fault of the demo server."""

    kind: str
    about: str
    fault: Mapping[str, object]


INCIDENTS = {
    incident.kind: incident
    for incident in (
        Incident("slow", "every decode step takes six times as long", {"slow": 6.0}),
        Incident("hang", "the engine makes no token any more, and no request ends", {"hang": True}),
        Incident("kv_pressure", "nine tenths of the KV cache are gone, requests queue", {"kv_pressure": 0.9}),
        Incident("errors", "six requests of ten fail", {"errors": 0.6}),
        Incident("queue", "the engine runs one request at a time", {"queue": True}),
    )
}
NO_FAULT: Mapping[str, object] = {"slow": 1.0, "hang": False, "kv_pressure": 0.0, "errors": 0.0, "queue": False}
NONE = "none"


@dataclass(frozen=True, slots=True)
class Plan:
    """How the story goes. Its parts scale with `seconds`; how long a page takes is the contract's doing, not ours.

    `page_s` and `resolve_s` are what those parts usually take (for the progress bars), the limits when to give up.
    """

    seconds: int
    incident: Incident | None
    healthy_s: float
    hold_s: float
    page_s: float = 25.0
    page_limit_s: float = 90.0
    resolve_s: float = 30.0
    resolve_limit_s: float = 120.0

    @property
    def length_s(self) -> float:
        """What the whole story usually takes."""
        return self.healthy_s if self.incident is None else self.healthy_s + self.page_s + self.hold_s + self.resolve_s

    @property
    def load_s(self) -> float:
        """Longer than the story can last: the load is ended, it does not run out."""
        return self.healthy_s + self.hold_s + self.page_limit_s + self.resolve_limit_s + 60


def plan(seconds: int, kind: str) -> Plan:
    """The story of about so many seconds with an incident of that kind, or `none`. Raises UsageError."""
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise UsageError(f"--seconds {seconds}: use from {MIN_SECONDS} to {MAX_SECONDS}")
    if kind == NONE:
        return Plan(seconds, None, healthy_s=float(seconds), hold_s=0.0)
    if kind not in INCIDENTS:
        raise UsageError(f"--incident {kind}: use {', '.join(INCIDENTS)} or {NONE}")
    return Plan(seconds, INCIDENTS[kind], healthy_s=min(max(seconds / 3, 10.0), 60.0), hold_s=min(seconds / 20, 20.0))


RATE_RPS = 4
OUTPUT_TOKENS = "30-50"
INPUT_WORDS = "8-16"
ANY_PORT = "127.0.0.1:0"


def environment(inherited: Mapping[str, str], collector_url: str | None = None) -> dict[str, str]:
    """The environment of a child: ours, less what would change the story, and past any proxy of the machine's."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith(("FIRSTTOKEN_", "OTEL_")) and not name.lower().endswith("_proxy")
    }
    kept |= {"NO_PROXY": "*", "no_proxy": "*", "PYTHONUNBUFFERED": "1"}
    if collector_url is not None:
        kept |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector_url,
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_METRIC_EXPORT_INTERVAL": str(EXPORT_MS),
        }
    return kept


def server(environ: Mapping[str, str]) -> Command:
    """The demo server: sixteen at a time, 20 ms a step, a cache that a healthy load fills to about a third."""
    size = ("--max-batch", "16", "--kv-blocks", "96", "--max-model-len", "512")
    flags = ("--step-ms", "20", *size, "--model", MODEL, "--device", "auto")
    return Command("demo-server", (*_python("demo_server"), "--listen", ANY_PORT, *flags), environment(environ))


def collector(folder: Path, environ: Mapping[str, str], webhook: str | None) -> Command:
    """The collector; with a webhook it notifies, without one it only shows."""
    where = ("--slo", str(folder / "slo.yaml"), "--database", f"sqlite:///{folder / 'firsttoken.db'}")
    listen = ("--listen", ANY_PORT, "--grpc", "off", "--tick", f"{TICK_S}s", "--drain-timeout", "3s")
    notify = ("--webhook", webhook) if webhook is not None else ()
    return Command("collector", (*_python("collector"), *where, *listen, *notify), environment(environ))


def sidecar(folder: Path, environ: Mapping[str, str], *, server_url: str, collector_url: str) -> Command:
    where = ("--upstream", server_url, "--listen", ANY_PORT, "--admin", ANY_PORT, "--slo", str(folder / "slo.yaml"))
    argv = (*_python("sidecar"), *where, "--drain-timeout", "3")
    return Command("sidecar", argv, environment(environ, collector_url))


def load(name: str, folder: Path, environ: Mapping[str, str], *, proxy_url: str, seconds: float) -> Command:
    """Users: an open-loop Poisson load in a process of its own, so that nothing here makes it late. Its log and its
    report are called by its name."""
    flags = ("--rate", str(RATE_RPS), "--seconds", f"{seconds:g}", "--model", MODEL, "--seed", "1")
    size = ("--input", INPUT_WORDS, "--output", OUTPUT_TOKENS, "--timeout", str(PATIENCE_S), "--class", "none")
    report = ("--json", str(folder / f"{name}.json"), "--quiet")
    argv = (*_python("capacity"), "load", "--target", proxy_url, *flags, *size, *report)
    return Command(name, argv, environment(environ))


def rules(folder: Path, environ: Mapping[str, str], *, webhook: str) -> Command:
    """What writes Prometheus rules and Alertmanager routes from the demo's own contract."""
    where = ("--slo", str(folder / "slo.yaml"), "--out", str(folder / "rules"))
    every = f"{TICK_S}s"
    pace = (
        *("--eval-interval", every, "--scrape-interval", every),
        *("--group-wait", GROUP_WAIT, "--group-interval", GROUP_INTERVAL),
    )
    tell = ("--page-webhook", webhook, "--ticket-webhook", webhook)
    return Command("alerts-build", (*_python("alerts"), "build", *where, *pace, *tell), environment(environ))


def _python(package: str) -> tuple[str, ...]:
    return (sys.executable, "-m", package)
