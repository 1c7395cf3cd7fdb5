"""The containers of a kept rendering started as processes: their own arguments and variables, with paths and ports of
this machine, the token asked for where it must be, and the sidecar's counts taken by the collector."""

import contextlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from slo.signals import COLLECTOR_METRICS
from tests.deploy.manifests import Object, kept
from tests.generate_docs import ROOT
from tests.ports import free_ports
from tests.sidecar.process import engine, environment

TOKEN = "a-token-of-some-length"
PATIENCE_S = 60.0
(POINTS,) = (metric.prometheus for metric in COLLECTOR_METRICS if metric.name == "firsttoken.collector.points")


@dataclass(frozen=True)
class Machine:
    """A folder in the place of a container's own, and ports by those of the containers."""

    folder: Path
    ports: dict[int, int]

    def here(self, text: str) -> str:
        """An argument or a variable of a container as it is on this machine."""
        told = re.sub(r"/(etc|var/lib)/firsttoken", str(self.folder), text)
        told = re.sub(r"0\.0\.0\.0:(\d+)", lambda port: f"127.0.0.1:{self.ports[int(port[1])]}", told)
        told = told.replace("http://127.0.0.1:8000", self.url(8000))
        return told.replace("http://firsttoken-collector:4318", self.url(4318))

    def url(self, port: int, path: str = "") -> str:
        return f"http://127.0.0.1:{self.ports[port]}{path}"


def check(folder: Path) -> None:
    """Start the collector and the sidecar of `example`; both ask for the token, and one hears the other."""
    for name, text in (("slo/slo.yaml", (ROOT / "slo.yaml").read_text()), ("token/token", TOKEN)):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    numbers = (4317, 4318, 8001, 9464)
    machine = Machine(folder, dict(zip(numbers, free_ports(len(numbers)), strict=True)))
    with engine(b"") as server, contextlib.ExitStack() as running:
        machine.ports[8000] = int(server.rpartition(":")[2])
        for container in sorted(_ours(kept("example")), key=lambda one: one["image"]):
            running.enter_context(_started(container, machine))
        _await(lambda: all(_answer(machine.url(port, "/readyz"))[0] == 200 for port in (4318, 9464)))
        for port in (4318, 9464):
            assert _answer(machine.url(port, "/metrics"))[0] == 401, "the token is not asked for"
            assert _answer(machine.url(port, "/metrics"), TOKEN)[0] == 200
        heard = re.compile(rf"^{POINTS}(?:\{{.*\}})? [1-9]", re.MULTILINE)
        _await(lambda: heard.search(_answer(machine.url(4318, "/metrics"), TOKEN)[1]) is not None)


def _ours(rendered: list[Object]) -> Iterator[Object]:
    for one in rendered:
        if one["kind"] in ("Deployment", "StatefulSet"):
            spec = one["spec"]["template"]["spec"]
            yield from (c for c in [*spec.get("initContainers", []), *spec["containers"]] if "firsttoken" in c["image"])


@contextlib.contextmanager
def _started(container: Object, machine: Machine) -> Iterator[None]:
    """A container's process, with its variables as a kubelet expands them."""
    name = container["image"].partition(":")[0].removeprefix("firsttoken-")
    told = {"OTEL_METRIC_EXPORT_INTERVAL": "300"}
    for variable in container.get("env", []):
        value = variable.get("value", TOKEN)  # what comes from a Secret or from the pod: any text will do
        told[variable["name"]] = re.sub(r"\$\((\w+)\)", lambda found: told[found[1]], value)
    command = [sys.executable, "-m", "firsttoken", name, *(machine.here(word) for word in container["args"])]
    path = {"PYTHONPATH": str(ROOT)}
    with (
        (machine.folder / f"{name}.log").open("w") as log,
        subprocess.Popen(command, cwd=machine.folder, env=environment(**told, **path), stdout=log, stderr=log) as popen,
    ):
        try:
            yield
        except AssertionError:
            print((machine.folder / f"{name}.log").read_text(), file=sys.stderr)
            raise
        finally:
            popen.terminate()


def _await(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end_s, "waited in vain"
        time.sleep(0.1)


def _answer(url: str, token: str = "") -> tuple[int, str]:
    """Status and body; 0 while nobody answers."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except OSError:
        return 0, ""
