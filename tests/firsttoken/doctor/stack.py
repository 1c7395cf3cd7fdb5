"""A small stack of real parts: an engine's stand-in, sidecar, collector, Prometheus, Alertmanager, in seconds."""

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from alerts import cli as alerts_cli
from firsttoken.prometheus import installed
from tests.collector.support import Running, collector, until
from tests.firsttoken.doctor.front import VLLM, Front, front
from tests.ports import free_ports
from tests.sidecar.process import Process, sidecar

SLO_YAML = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, window: 1d}
  - {name: answered, signal: availability, target: 99%, window: 1d}
  - {name: whole, signal: e2e, percentile: 95, threshold: 30s, window: 1d}
"""
REQUESTS = 3
Seen = TypeVar("Seen")
PATIENCE_S, PAUSE_S = 40.0, 0.5


@dataclass
class Stack:
    """Where everything answers, and the means to tell Prometheus and Alertmanager something else."""

    folder: Path
    engine: Front
    sidecar: Process
    collector: Running
    ports: dict[str, int] = field(default_factory=dict)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.ports[name]}"

    @property
    def slo(self) -> str:
        return str(self.folder / "slo.yaml")

    def configure(self, **parts: object) -> None:
        """Give Prometheus its usual configuration with these parts instead, and have it loaded."""
        self.write_prometheus(**parts)
        reload(self.url("prometheus"))

    def write_prometheus(self, **parts: object) -> None:
        alertmanager = [{"static_configs": [{"targets": [f"127.0.0.1:{self.ports['alertmanager']}"]}]}]
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(self.folder / "rules" / "*.rules.yaml")],
            "alerting": {"alertmanagers": alertmanager},
            "scrape_configs": self.jobs("firsttoken"),
        }
        (self.folder / "prometheus.yml").write_text(json.dumps(config | parts))

    def jobs(self, *names: str) -> list[Mapping[str, object]]:
        targets = [f"127.0.0.1:{self.sidecar.admin}"]
        others = [self.collector.url.removeprefix("http://")]
        return [
            *({"job_name": name, "static_configs": [{"targets": targets}]} for name in names),
            {"job_name": "collector", "static_configs": [{"targets": others}]},
        ]

    def route(self, config: str) -> None:
        """Give Alertmanager another configuration, and have it loaded."""
        (self.folder / "rules" / "alertmanager.yaml").write_text(config)
        reload(self.url("alertmanager"))


def reload(url: str) -> None:
    with urllib.request.urlopen(urllib.request.Request(f"{url}/-/reload", method="POST"), timeout=10):
        return


@contextlib.contextmanager
def stack(folder: Path) -> Iterator[Stack]:
    """All of it, with some requests behind it; ended afterwards, each by its own process."""
    (folder / "slo.yaml").write_text(SLO_YAML)
    (folder / "rules").mkdir()
    with contextlib.ExitStack() as ends:
        engine = ends.enter_context(front(Front(VLLM, pause_s=0.0)))
        running = ends.enter_context(collector(folder, "--grpc", "off", "--tick", "1s", spec=SLO_YAML))
        otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": running.url, "OTEL_METRIC_EXPORT_INTERVAL": "500"}
        flags = ("--slo", str(folder / "slo.yaml"))
        before = ends.enter_context(sidecar(engine.url, *flags, cwd=folder, **otel))
        made = Stack(folder, engine, before, running)
        build(folder)
        ends.enter_context(tools(made))
        for _ in range(REQUESTS):
            assert before.ask(model="m")[0] == 200
        yield made


def build(folder: Path) -> None:
    """Rules and routes as the command writes them."""
    tell = ("--page-webhook", "http://127.0.0.1:9/page", "--ticket-webhook", "http://127.0.0.1:9/ticket")
    flags = ("--slo", str(folder / "slo.yaml"), "--out", str(folder / "rules"), "--eval-interval", "5s")
    assert alerts_cli.main(["build", *flags, *tell]) == 0


@contextlib.contextmanager
def tools(made: Stack) -> Iterator[None]:
    """A real Prometheus and a real Alertmanager on free ports."""
    found = installed()
    if found is None:
        pytest.skip("prometheus and alertmanager are not on PATH")
    made.ports |= dict(zip(("prometheus", "alertmanager"), free_ports(2), strict=True))
    made.write_prometheus()
    routes, listen = str(made.folder / "rules" / "alertmanager.yaml"), "--web.listen-address=127.0.0.1:"
    commands = {
        "alertmanager": [
            *(found.alertmanager, f"--config.file={routes}", f"--storage.path={made.folder / 'am'}"),
            *("--cluster.listen-address=", f"{listen}{made.ports['alertmanager']}"),
        ],
        "prometheus": [
            *(found.prometheus, f"--config.file={made.folder / 'prometheus.yml'}", "--web.enable-lifecycle"),
            *(f"--storage.tsdb.path={made.folder / 'tsdb'}", f"{listen}{made.ports['prometheus']}"),
        ],
    }
    with contextlib.ExitStack() as ends:
        children = [ends.enter_context(child(command, made.folder)) for command in commands.values()]
        for name in commands:
            until(partial(is_ready, made.url(name), children))
        yield


@contextlib.contextmanager
def child(command: Sequence[str], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with (folder / "tools.log").open("ab") as log, subprocess.Popen(command, stdout=log, stderr=log) as one:
        try:
            yield one
        finally:
            one.kill()


def is_ready(url: str, children: Sequence["subprocess.Popen[bytes]"]) -> bool:
    assert all(one.poll() is None for one in children)
    with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/-/ready", timeout=2):
        return True
    return False


def eventually(look: Callable[[], Seen], wanted: Seen) -> None:
    """Look until these are seen and no others: a scrape, an evaluation and an export later."""
    deadline = time.monotonic() + PATIENCE_S
    while (seen := look()) != wanted:
        assert time.monotonic() < deadline, f"{seen or 'nothing'} is found instead of {wanted or 'nothing'}"
        time.sleep(PAUSE_S)
