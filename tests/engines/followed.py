"""A page of docs/ followed as a new user would: its commands as they stand, in their order.

A command that is a server's runs until it is ended, and the next one waits until it answers; where that very command
runs already, it is left alone, and another of the same server takes its place. Any other must succeed. Two things
differ from what the page says, because machines are shared: its ports are free ones here, also those that no command
names (8001, 9464), and MODEL is the model at hand.
"""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.generate_docs import ROOT
from tests.ports import free_ports

DOCS = ROOT / "docs"
PORTS = (4318, 8000, 8001, 8080, 9000, 9464)
START_S, VLLM_START_S = 90.0, 600.0
STOP_S = 10.0

ANSWERS: dict[str, tuple[int, str]] = {
    "firsttoken capacity": (8001, "/v1/models"),
    "firsttoken collector": (4318, "/readyz"),
    "firsttoken demo-server": (8000, "/health"),
    "firsttoken sidecar": (9464, "/readyz"),
    "llama-server": (8080, "/health"),
    "python pager.py": (9000, "/"),
    "uvicorn": (8000, "/docs"),
    "vllm serve": (8000, "/health"),
}
"""Commands that keep their terminal; what answers once each is ready, by the page's port and a path."""


def section(page: str, title: str) -> str:
    """What stands under a heading of a page, up to the next one of its kind."""
    text = (DOCS / page).read_text()
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert isinstance(found, str)
    return found


def blocks(text: str, kind: str) -> list[str]:
    """The code blocks of one language."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(page: str, title: str) -> list[str]:
    """The commands of a section, one by one."""
    shown = "".join(blocks(section(page, title), "sh")).replace("\\\n", " ")
    return [line for line in shown.splitlines() if line.strip()]


def program(command: str) -> str:
    """The key of `ANSWERS` that a command is; '' for one that ends."""
    words = [word for word in shlex.split(command) if not re.match(r"[A-Z_]+=", word)]
    return next((name for name in ANSWERS if words[: len(name.split())] == name.split()), "")


@dataclass
class Follower:
    """Someone at a terminal in `folder`; `models` is what a command's MODEL stands for, by program ('': any)."""

    folder: Path
    models: Mapping[str, str]
    settings: dict[str, str]
    ports: dict[int, int] = field(default_factory=lambda: dict(zip(PORTS, free_ports(len(PORTS)), strict=True)))
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    started: dict[str, str] = field(default_factory=dict)

    def follow(self, page: str, title: str) -> list[str]:
        """Run a section; what each command printed that ended."""
        return [said for command in commands(page, title) if (said := self.run(command)) is not None]

    def run(self, command: str) -> str | None:
        """Run one command; None for a server's, which answers by then."""
        name = program(command)
        told = self.here(re.sub(r"\bMODEL\b", self.models.get(name, self.models[""]), command))
        if told.startswith("export "):
            self.settings |= dict(word.split("=", 1) for word in shlex.split(told)[1:])
            return None
        if name:
            return self._serve(name, told)
        done = subprocess.run(["sh", "-c", told], cwd=self.folder, env=self._env(name), capture_output=True, text=True)
        # `firsttoken status` ends with 1 where a budget is spent: a busy machine may well be late for a first token.
        assert done.returncode == 0 or (done.returncode == 1 and "firsttoken status" in told), (told, done.stderr)
        return done.stdout

    def here(self, text: str) -> str:
        """A text of the page with this machine's ports."""
        return re.sub(r"\b\d{4}\b", lambda port: str(self.ports.get(int(port[0]), port[0])), text)

    def _env(self, name: str) -> dict[str, str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "FIRSTTOKEN_"))}
        if name == "firsttoken collector":
            place = {"FIRSTTOKEN_LISTEN": f"127.0.0.1:{self.ports[4318]}", "FIRSTTOKEN_GRPC": "off"}
        elif name == "firsttoken demo-server":
            place = {"FIRSTTOKEN_LISTEN": f"127.0.0.1:{self.ports[8000]}"}
        else:
            place = {"FIRSTTOKEN_LISTEN": f"127.0.0.1:{self.ports[8001]}"}
            place["FIRSTTOKEN_ADMIN"] = f"127.0.0.1:{self.ports[9464]}"
        return kept | place | self.settings

    def log(self, name: str) -> str:
        """What a server has printed so far."""
        return self._log(name).read_text()

    def _log(self, name: str) -> Path:
        return self.folder / f"{name.replace(' ', '-')}.log"

    def _serve(self, name: str, told: str) -> None:
        if self.started.get(name) == told:
            return
        if name in self.running:
            self.end(name)
        self.started[name] = told
        with self._log(name).open("wb") as log:
            self.running[name] = subprocess.Popen(
                ["sh", "-c", re.sub(r"^((?:[A-Z_]+=\S+ )*)", r"\1exec ", told)],
                cwd=self.folder,
                env=self._env(name),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        port, path = ANSWERS[name]
        end_s = time.monotonic() + (VLLM_START_S if name == "vllm serve" else START_S)
        while not self._answers(f"http://127.0.0.1:{self.ports[port]}{path}"):
            assert self.running[name].poll() is None, self.log(name)
            assert time.monotonic() < end_s, self.log(name)
            time.sleep(0.05)

    def _answers(self, url: str) -> bool:
        try:
            with urllib.request.urlopen(url, timeout=STOP_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def end(self, *names: str) -> None:
        """End these servers, or all; by their ids, with all that they began."""
        for name in names or reversed(list(self.running)):
            popen = self.running.pop(name)
            del self.started[name]
            popen.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                popen.wait(STOP_S)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(popen.pid, signal.SIGKILL)
            popen.wait()
            assert popen.stdin is not None
            popen.stdin.close()


@contextlib.contextmanager
def following(
    folder: Path, models: Mapping[str, str], *, programs: Path | None = None, **settings: str
) -> Iterator[Follower]:
    """A new user in an empty folder, whose commands come from `programs` first; nothing of theirs is left running."""
    path = os.pathsep.join([*([str(programs)] if programs else []), os.environ["PATH"]])
    user = Follower(folder, models, {"PATH": path, **settings})
    try:
        yield user
    finally:
        user.end()
