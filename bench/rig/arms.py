"""What stands between client and source: one process each, its port, its CPU time, its memory.

Every process is tied to the bench's life, so none outlives it, and is started on the cores and at the priority of
the process that starts it.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TETHER = ROOT / "firsttoken" / "tether.py"
START_S = 30.0
SPAN_DELAY_S = 1.0
CPUCLOCK_SCHED = 2  # as clock_getcpuclockid(3) makes it: time on a CPU of all threads, living and dead

NGINX_MISSING = "nginx is not on PATH: apt-get install nginx-light"
NGINX_CONF = """
daemon off; master_process off; pid {dir}/pid; error_log stderr error; worker_rlimit_nofile 20000;
events {{ worker_connections 8192; }}
http {{
  access_log off; keepalive_timeout 3600; keepalive_requests 1000000000;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  upstream source {{
    server 127.0.0.1:{source}; keepalive 4096; keepalive_requests 1000000000; keepalive_timeout 3600;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://source; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_read_timeout 3600;
    }}
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way from client to source. `pid` None: no process, the client speaks to the source itself."""

    name: str
    port: int
    pid: int | None = None
    exports_spans: bool = False

    def cpu_ns(self) -> int:
        """Time on a CPU so far, user and system, of all its threads."""
        return 0 if self.pid is None else time.clock_gettime_ns(~self.pid << 3 | CPUCLOCK_SCHED)

    def waited_ns(self) -> int:
        """How long its threads were ready to run and had no core."""
        if self.pid is None:
            return 0
        tasks = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[1]) for task in tasks)

    def rss_mb(self) -> float:
        if self.pid is None:
            return 0.0
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


Start = Callable[[int], AbstractContextManager[Arm]]  # given the source's port


def environment(tree: Path = ROOT, **extra: str) -> dict[str, str]:
    """This process's environment without anything that would speak to a sidecar; packages come from `tree`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OTEL_", "FIRSTTOKEN_"))}
    return kept | {"PYTHONPATH": str(tree), "PYTHONWARNINGS": "ignore"} | extra


@contextlib.contextmanager
def running(
    command: list[str], *, env: dict[str, str] | None = None, fd: int | None = None
) -> Iterator["subprocess.Popen[str]"]:
    """A process, gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), *command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=env or environment(),
        cwd=(env or {}).get("PYTHONPATH", ROOT),
        pass_fds=() if fd is None else (fd,),
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def first_port(process: "subprocess.Popen[str]", name: str) -> int:
    """The port at the end of the first line that a process prints."""
    assert process.stdout is not None
    if not (line := process.stdout.readline()):
        raise SystemExit(f"{name} ended with code {process.wait()} before it served")
    return int(line.rsplit(":", 1)[-1])


def await_port(process: "subprocess.Popen[str]", port: int, name: str) -> None:
    """Until something answers at the port; it's ours if our process lives."""
    end_s = time.monotonic() + START_S
    while time.monotonic() < end_s and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            if process.poll() is None:
                return
        time.sleep(0.02)
    raise SystemExit(f"{name} does not serve on port {port}; its exit code is {process.poll()}")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextlib.contextmanager
def source() -> Iterator[Arm]:
    with running([sys.executable, str(HERE / "source.py")]) as process:
        yield Arm("source", first_port(process, "the source"), process.pid)


@contextlib.contextmanager
def direct(source: int) -> Iterator[Arm]:
    yield Arm("direct", source)


def nginx_path() -> str | None:
    return shutil.which("nginx", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


@contextlib.contextmanager
def nginx(source: int) -> Iterator[Arm]:
    """One worker, without a master; everything that it writes is in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        port, conf = free_port(), Path(folder) / "nginx.conf"
        conf.write_text(NGINX_CONF.format(dir=folder, port=port, source=source))
        with running([nginx_path() or "nginx", "-p", folder, "-c", str(conf), "-e", "stderr"]) as process:
            await_port(process, port, "nginx")
            yield Arm("nginx", port, process.pid)


def sidecar(*arguments: str, name: str = "sidecar", tree: Path = ROOT) -> Start:
    @contextlib.contextmanager
    def start(source: int) -> Iterator[Arm]:
        url = f"http://127.0.0.1:{source}"
        places = ["--upstream", url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--otlp-endpoint", url]
        manners = ["--slo", str(tree / "slo.yaml"), "--gpu", "off", "--log-level", "error"]
        # Spans leave each second, not after five, so that a turn can wait for its own; the rest is as it comes.
        env = environment(tree, OTEL_BSP_SCHEDULE_DELAY=f"{SPAN_DELAY_S * 1000:.0f}")
        with running([sys.executable, "-m", "sidecar", *places, *manners, *arguments], env=env) as process:
            yield Arm(name, first_port(process, name), process.pid, exports_spans=True)

    return start


def script(file: str, name: str, *arguments: str) -> Start:
    """A proxy of this folder: told the source's port and a descriptor that listens, then `arguments`."""

    @contextlib.contextmanager
    def start(source: int) -> Iterator[Arm]:
        with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
            fd, port = listening.fileno(), listening.getsockname()[1]
            with running([sys.executable, str(HERE / file), str(source), str(fd), *arguments], fd=fd) as process:
                await_port(process, port, name)
                yield Arm(name, port, process.pid)

    return start


ARMS: dict[str, Start] = {
    "direct": direct,
    "nginx": nginx,
    "sidecar": sidecar(),
    "sidecar-as-is": sidecar("--inject-usage", "off", name="sidecar-as-is"),
    "relay": script("tcp_relay.py", "relay"),
    "fastapi": script("fastapi_proxy.py", "fastapi", "uvloop", "httptools"),
    "fastapi-plain": script("fastapi_proxy.py", "fastapi-plain", "asyncio", "h11"),
    "fastapi-reading": script("fastapi_proxy.py", "fastapi-reading", "asyncio", "h11", "reading"),
}
NAMES = f"{', '.join(ARMS)} or sidecar@FOLDER"


def starter(name: str) -> Start | None:
    """How an arm is started; `sidecar@FOLDER` is that of another checkout. None: there is no such arm."""
    kind, _, folder = name.partition("@")
    if kind == "sidecar" and folder and (Path(folder) / "sidecar").is_dir():
        return sidecar(name=name, tree=Path(folder).resolve())
    return ARMS.get(name)
