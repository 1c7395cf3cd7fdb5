"""The sidecar as the system sees it: its processes, their memory, files and threads, and who is connected to them."""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

START_S = 60.0
LISTEN = "0A"  # the state of a socket that listens, in /proc/net/tcp

Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]
"""A page: values by name of the sample and its labels, sorted."""


@dataclass(frozen=True, slots=True)
class Reading:
    """All processes of the sidecar at one moment; `peers`: open connections by the port at their other end, and by our
    own as `-port`."""

    rss_mb: float
    threads: int
    files: int
    peers: Counter[int]


@dataclass
class Sidecar:
    """A running sidecar."""

    popen: "subprocess.Popen[str]"
    proxy: int
    admin: int
    errors: list[str] = field(default_factory=list)

    def reading(self) -> Reading:
        pids = [self.popen.pid, *_children(self.popen.pid)]
        rss = threads = files = 0
        inodes: set[str] = set()
        for pid in pids:
            status = Path(f"/proc/{pid}/status").read_text()
            rss += int(status.split("VmRSS:")[1].split()[0])
            threads += int(status.split("Threads:")[1].split()[0])
            links = _links(pid)
            files += len(links)
            inodes.update(link[8:-1] for link in links if link.startswith("socket:["))
        return Reading(rss / 1024, threads, files, _peers(inodes))

    def page(self) -> Samples:
        """Every sample of /metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=30) as answer:
            text = answer.read().decode()
        samples: Samples = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                samples.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
        return samples

    def stop(self) -> int:
        self.popen.send_signal(signal.SIGTERM)
        return self.popen.wait(START_S)


def _children(pid: int) -> list[int]:
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in _words(task / "children")]


def _words(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text().split()
    return []


def _links(pid: int) -> list[str]:
    """What each open file of a process is; one that closes meanwhile is none."""
    found = []
    for file in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.append(str(file.readlink()))
    return found


def _peers(inodes: set[str]) -> Counter[int]:
    peers: Counter[int] = Counter()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[9] in inodes and words[3] != LISTEN:
            peers[int(words[2].rsplit(":", 1)[1], 16)] += 1
            peers[-int(words[1].rsplit(":", 1)[1], 16)] += 1
    return peers


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without anything that would speak to a sidecar."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "FIRSTTOKEN_"))}
    return kept | extra


@contextlib.contextmanager
def running(upstream: str, *flags: str, cwd: Path, root: Path, **environ: str) -> Iterator[Sidecar]:
    """The sidecar of the tree at `root` before `upstream`; gone afterwards, whatever happened."""
    command = [sys.executable, "-m", "sidecar", "--upstream", upstream]
    command += ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--gpu", "off", *flags]
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(PYTHONPATH=str(root), **environ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as popen:
        lines: queue.Queue[str] = queue.Queue()
        errors: list[str] = []
        readers = [
            threading.Thread(target=_follow, args=(popen.stdout, lines.put), daemon=True),
            threading.Thread(target=_follow, args=(popen.stderr, errors.append), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            yield Sidecar(popen, _port(lines, popen, errors), _port(lines, popen, errors), errors)
        finally:
            if popen.poll() is None:
                popen.kill()
            popen.wait()
            for reader in readers:
                reader.join()


def _follow(stream: object, take: object) -> None:
    for line in stream:  # type: ignore[attr-defined]
        take(line.rstrip("\n"))  # type: ignore[operator]


def _port(lines: "queue.Queue[str]", popen: "subprocess.Popen[str]", errors: list[str]) -> int:
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s and popen.poll() is None:
        with contextlib.suppress(queue.Empty):
            return int(lines.get(timeout=0.1).rsplit(":", 1)[1])
    raise SystemExit(f"the sidecar did not start: {errors}")
