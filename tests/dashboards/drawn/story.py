"""What is drawn: a demo that was lived through, and devices that were made up, each as a Prometheus has kept it."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.dashboards import live, stack
from tests.dashboards.support import specs

SETTLED_S = 60.0
FIRES = re.compile(r"\(Prometheus: (?!nothing)")


@dataclass(frozen=True, slots=True)
class Story:
    """A Prometheus, and the time of it that is drawn."""

    url: str
    start_s: float
    end_s: float


@contextmanager
def demo(folder: Path) -> Iterator[Story]:
    """A real demo, run to its end, as its Prometheus knew it when an alert last fired."""
    program, start_s, fired_s = live.tool("prometheus"), time.time(), 0.0
    command = [sys.executable, "-m", "firsttoken", "demo", "--seconds", "60", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="")
            fired_s = time.time() if FIRES.search(line) else fired_s
    if child.returncode or not fired_s:
        raise SystemExit(f"the demo failed ({child.returncode}), or nothing fired in it")
    with stack.prometheus(program, folder / "prometheus", {}) as url:
        yield Story(url, start_s, fired_s)


@contextmanager
def devices(folder: Path) -> Iterator[Story]:
    """Sidecars and a dcgm-exporter that tell of one GPU; the story lasts for as long as it has been told."""
    folder.mkdir()
    of = specs()
    with (
        stack.exporter(lambda age_s: stack.page(of, ("m1",), age_s)) as sidecars,
        stack.prometheus(live.tool("prometheus"), folder, {"sidecar": sidecars}) as url,
    ):
        start_s = time.time()
        yield Story(url, start_s, start_s + SETTLED_S)
