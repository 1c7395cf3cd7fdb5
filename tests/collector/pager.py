"""A real Alertmanager that rings a receiver of ours, and that can be stopped, frozen and started again."""

import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.collector import support


def tool() -> str:
    """Alertmanager on this machine, under its own name or Debian's."""
    found = shutil.which("alertmanager") or shutil.which("prometheus-alertmanager")
    if found is None:
        pytest.skip("alertmanager is missing: install it, as with apt-get install prometheus-alertmanager")
    return found


@dataclass
class Pager:
    """One Alertmanager at an address that stays the same over its lives."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Run, and return when it is ready."""
        flags = ["--config.file=alertmanager.yaml", f"--storage.path={self.folder}/am", "--cluster.listen-address="]
        with (self.folder / "alertmanager.log").open("ab") as log:
            command = [tool(), *flags, f"--web.listen-address=127.0.0.1:{self.port}"]
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        support.until(self._is_ready)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it by the signal, and wait."""
        if self.process is not None:
            self.send(signal.SIGCONT)
            self.send(number)
            self.process.wait(timeout=support.PATIENCE_S)
            self.process = None

    def send(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def alerts(self) -> list[dict[str, Any]]:
        """What it holds as firing."""
        found: list[dict[str, Any]] = support.ask(f"{self.url}/api/v2/alerts").json
        return found

    def _is_ready(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "alertmanager.log").read_text()
        try:
            return support.ask(f"{self.url}/-/ready").status == 200
        except OSError:
            return False


@contextmanager
def pager(folder: Path, hook: str) -> Iterator[Pager]:
    """An Alertmanager that is up and tells `hook` of each change of a service's group within a second."""
    folder.mkdir(exist_ok=True)
    (folder / "alertmanager.yaml").write_text(
        "route: {receiver: hook, group_by: [service_name], group_wait: 0s, group_interval: 1s}\n"
        f"receivers: [{{name: hook, webhook_configs: [{{url: '{hook}'}}]}}]\n"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    one = Pager(folder, port)
    try:
        one.start()
        yield one
    finally:
        one.end(signal.SIGKILL)
