"""A sidecar before a real server, with an endpoint that takes its telemetry."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slo.signals import OUTCOMES, REQUESTS, TOKENS, Metric
from tests.engines.llamacpp_server import MODEL, Engine
from tests.sidecar.process import Process, sidecar
from tests.sidecar.receiver import Receiver, eventually, receiving

QUICK = {"OTEL_BSP_SCHEDULE_DELAY": "50", "OTEL_METRIC_EXPORT_INTERVAL": "500"}
POLL_S = "0.1"


@dataclass(frozen=True, slots=True)
class Beside:
    """Sidecar and receiver of one server."""

    process: Process
    receiver: Receiver

    @property
    def port(self) -> int:
        return self.process.proxy

    def series(self, metric: Metric, part: str = "", **labels: str) -> dict[frozenset[str], float]:
        """The samples of a metric that have these labels, by all of theirs; of a histogram, its `_count` or `_sum`."""
        wanted = {f"{label}={value}" for label, value in labels.items()}
        found = {frozenset(key.split()): value for key, value in self.process.metrics().items()}
        return {key: value for key, value in found.items() if wanted | {metric.prometheus + part} <= key}

    def value(self, metric: Metric, part: str = "", **labels: str) -> float | None:
        """The one sample of a metric that has these labels, if there is one."""
        found = list(self.series(metric, part, **labels).values())
        assert len(found) <= 1, f"{metric.prometheus} has {len(found)} series with {labels}"
        return found[0] if found else None

    def outcomes(self) -> Counter[str]:
        """Requests of the served model by outcome; none that no request had."""
        series = self.series(REQUESTS, model_name=MODEL)
        counts = {name: sum(series[key] for key in series if f"outcome={name}" in key) for name in OUTCOMES}
        return Counter({name: int(count) for name, count in counts.items() if count})

    def tokens(self) -> tuple[float, float]:
        """Input and output tokens of the ended requests of the served model."""
        told = [self.value(TOKENS, model_name=MODEL, type=kind) for kind in ("input", "output")]
        return told[0] or 0.0, told[1] or 0.0


@contextlib.contextmanager
def beside(engine: Engine, cwd: Path, *arguments: str) -> Iterator[Beside]:
    """A sidecar that has recognised the engine by itself."""
    with (
        receiving() as receiver,
        sidecar(
            engine.url, "--scrape-interval", POLL_S, "--otlp-endpoint", receiver.url, *arguments, cwd=cwd, **QUICK
        ) as process,
    ):
        eventually(lambda: any("engine llamacpp" in line for line in process.errors))
        eventually(lambda: any(f"model_name={MODEL}" in key for key in process.metrics()))
        yield Beside(process, receiver)
