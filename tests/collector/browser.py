"""A real headless Chromium, driven by its own debugging protocol: enough to open a page, ask it things and hear its
console."""

import json
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.collector.support import PATIENCE_S, until

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def found() -> str | None:
    """The browser on this machine."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Tab:
    """One page. `complaints` are what it wrote to the console, and what it could not load or run."""

    def __init__(self, socket: ClientConnection) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._ids = count(1)
        for domain in ("Runtime", "Log", "Page"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                self.complaints.append(json.dumps(message["params"]))

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")


@contextmanager
def tab(url: str, profile: Path) -> Iterator[Tab]:
    """A browser of our own that shows the page, gone when the block ends."""
    browser = found()
    assert browser is not None
    command = [browser, *FLAGS, "--remote-debugging-port=0", f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port_file = profile / "DevToolsActivePort"
        until(lambda: port_file.exists() and port_file.read_text().count("\n") >= 1)
        port = port_file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=PATIENCE_S) as answer:
            page = next(one for one in json.loads(answer.read()) if one["type"] == "page")
        with connect(page["webSocketDebuggerUrl"], max_size=None) as socket:
            shown = Tab(socket)
            shown.call("Page.navigate", url=url)
            yield shown
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
