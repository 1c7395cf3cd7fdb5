"""The sidecar in several processes: to the world it is one."""

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from slo.signals import HEARTBEAT, KV_AT_ARRIVAL, REQUESTS, SERVICE_INSTANCE, WORKER_DEATHS, WORKERS
from tests.sidecar.certificates import certificate, client_context, connected, key
from tests.sidecar.engine_pages import RUNNING, metrics_page
from tests.sidecar.process import START_S, Process, engine, environment, sidecar
from tests.sidecar.receiver import attributes, eventually, receiving
from tests.sidecar.rig import chat, completion

SPEC = """
service: chat
objectives:
  - {name: first, signal: ttft, percentile: 95, threshold: 300ms, match: {model: m}}
  - {name: answered, signal: availability, target: 99.9%, match: {model: m}}
"""
ROOT = Path(__file__).parents[3]


def write_spec(folder: Path, text: str = SPEC) -> None:
    (folder / "slo.yaml").write_text(text)


def sums(process: Process, name: str) -> dict[str, float]:
    return {key: value for key, value in process.metrics().items() if key.startswith(name)}


def requests(process: Process, outcome: str = "ok", model: str = "m") -> float:
    found = sums(process, REQUESTS.prometheus)
    return sum(value for key, value in found.items() if f"outcome={outcome}" in key and f"model_name={model} " in key)


def events(process: Process, objective: str) -> tuple[float, float]:
    """Good and bad."""
    found = {key: value for key, value in process.metrics().items() if f"objective={objective} " in key}
    good, bad = (sum(v for k, v in found.items() if f"result={result}" in k) for result in ("good", "bad"))
    return good, bad


def gauge(process: Process, name: str) -> float:
    return sum(sums(process, name).values())


def workers(process: Process) -> list[int]:
    """The process ids of the workers that take requests."""
    found = subprocess.run(
        ["ps", "-o", "pid=,args=", "--ppid", str(process.popen.pid)], capture_output=True, text=True, check=False
    )
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "sidecar.worker" in line]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def tcp(place: str) -> tuple[str, int]:
    host, _, port = place.partition("://")[2].rpartition(":")
    return host, int(port)


@contextlib.contextmanager
def load(process: Process, clients: int = 4) -> Iterator[list[int]]:
    """Clients that ask again and again, each time anew; a status a request, 0 for a broken one."""
    statuses: list[int] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.is_set():
            try:
                statuses.append(process.ask()[0])
            except (OSError, http.client.HTTPException):
                statuses.append(0)

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_requests_over_several_workers_are_summed_on_one_page(tmp_path: Path) -> None:
    write_spec(tmp_path)
    with engine(completion("a", "b")) as url, sidecar(url, "--workers", "2", cwd=tmp_path) as process:
        assert requests(process) == 0
        assert events(process, "first") == (0, 0)
        for number in range(1, 31):
            assert process.ask()[0] == 200
            if number % 10 == 0:  # no report has been due for some of them yet: the page asks
                assert requests(process) == number
                assert events(process, "first") == events(process, "answered") == (number, 0)
        metrics = process.metrics()
        labels = "model_name=m service_name=chat"
        assert metrics[f"gen_ai_server_time_to_first_token_seconds_count {labels}"] == 30
        assert metrics[f"firsttoken_requests_in_flight {labels}"] == 0
        eventually(lambda: gauge(process, WORKERS.prometheus) == 2)
        assert gauge(process, WORKER_DEATHS.prometheus) == 0
        eventually(lambda: process.get("/readyz") == (200, "ready\n"))
        assert process.get("/healthz") == (200, "ok\n")
        assert process.stop() == 0
    assert not any("ERROR" in line or "Traceback" in line for line in process.errors)


def test_a_worker_killed_under_load_takes_no_sum_with_it(tmp_path: Path) -> None:
    write_spec(tmp_path)
    with engine(completion("a"), chunks_s=0.02) as url, sidecar(url, "--workers", "2", cwd=tmp_path) as process:
        seen: list[dict[str, float]] = []
        with load(process) as statuses:
            eventually(lambda: requests(process) >= 20)
            for round_ in range(1, 3):
                victim = workers(process)[0]
                os.kill(victim, signal.SIGKILL)
                until = len(statuses) + 40
                while gauge(process, WORKER_DEATHS.prometheus) < round_ or len(statuses) < until:
                    seen.append(process.metrics())
                eventually(lambda: gauge(process, WORKERS.prometheus) == 2)
        for before, after in pairwise(seen):
            for name, value in before.items():
                if "_total" in name or "_count" in name or "_bucket" in name:
                    assert after[name] >= value, name
        asked, broken = len(statuses), statuses.count(0)
        assert statuses.count(200) == asked - broken
        assert 0 < broken <= 2 * 4  # those that a victim had taken, of four clients
        # What a victim had counted since its last report, a second before at most, is lost with it.
        lost = asked - requests(process) - requests(process, "error")
        assert -2 * 4 <= lost < asked / 2
        assert process.stop() == 0
    deaths = [line for line in process.errors if "was killed by SIGKILL" in line]
    assert len(deaths) == 2
    assert all("the next starts in" in line for line in deaths)


def test_requests_in_flight_in_a_killed_worker_count_as_errors(tmp_path: Path) -> None:
    write_spec(tmp_path)
    with engine(None) as url, sidecar(url, "--workers", "2", cwd=tmp_path) as process, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(socket.socket()) for _ in range(20)]
        for client in clients:
            client.connect(("127.0.0.1", process.proxy))
            client.sendall(chat())
        in_flight = "firsttoken_requests_in_flight"
        eventually(lambda: gauge(process, in_flight) == 20 and events(process, "first") == (0, 20))
        assert gauge(process, "firsttoken_requests_overdue") == 20  # of both workers, and so a stalled engine
        assert gauge(process, "firsttoken_last_token_age_seconds") > 0.3
        os.kill(workers(process)[0], signal.SIGKILL)
        eventually(lambda: requests(process, "error") > 0)
        broken = requests(process, "error")
        assert gauge(process, in_flight) == 20 - broken
        assert events(process, "answered") == (0, broken)
        assert events(process, "first") == (0, 20)  # that verdict was in
        for worker in workers(process):
            os.kill(worker, signal.SIGKILL)
        eventually(lambda: requests(process, "error") == 20)
        assert gauge(process, in_flight) == 0


def test_workers_whose_parent_is_killed_let_requests_end_and_leave_the_address(tmp_path: Path) -> None:
    with (
        engine(completion("a"), chunks_s=1.0) as url,
        sidecar(url, "--workers", "2", cwd=tmp_path) as process,
        socket.socket() as client,
    ):
        pids = workers(process)
        assert len(pids) == 2
        client.connect(("127.0.0.1", process.proxy))
        client.sendall(chat())
        eventually(lambda: gauge(process, "firsttoken_requests_in_flight") == 1)
        process.popen.kill()
        process.popen.wait()
        answer = b""
        while not answer.endswith(b"0\r\n\r\n"):
            piece = client.recv(1 << 16)
            assert piece, answer
            answer += piece
        eventually(lambda: not any(is_alive(pid) for pid in pids))
        with socket.socket() as other:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            other.bind(("127.0.0.1", process.proxy))


def test_a_reload_reaches_every_worker(tmp_path: Path) -> None:
    write_spec(tmp_path)
    ok = "firsttoken_config_last_reload_successful service_name=chat"
    with engine(completion("a")) as url, sidecar(url, "--workers", "2", cwd=tmp_path) as process:
        for _ in range(10):
            process.ask()
        write_spec(tmp_path, SPEC.replace("95", "101"))
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: process.metrics()[ok] == 0)
        assert events(process, "answered") == (10, 0)
        write_spec(tmp_path, SPEC.replace("300ms", "310ms").replace("name: answered", "name: alive"))
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: process.metrics()[ok] == 1)
        for _ in range(20):
            assert process.ask()[0] == 200
        metrics = process.metrics()
        assert events(process, "alive") == events(process, "first") == (20, 0)
        assert not any("objective=answered " in name for name in metrics)
        assert metrics["gen_ai_server_time_to_first_token_seconds_bucket le=0.31 model_name=m service_name=chat"] == 20
        os.kill(workers(process)[0], signal.SIGKILL)
        eventually(lambda: gauge(process, WORKER_DEATHS.prometheus) == 1)
        write_spec(tmp_path, "what stands there now is not what is in force")
        eventually(lambda: gauge(process, WORKERS.prometheus) == 2)
        for _ in range(20):
            assert process.ask()[0] == 200
        assert events(process, "alive") == (40, 0)
        assert process.stop() == 0


def test_over_otlp_it_is_one_instance_that_beats_once_a_second(tmp_path: Path) -> None:
    environ = {"OTEL_METRIC_EXPORT_INTERVAL": "200", "OTEL_BSP_SCHEDULE_DELAY": "100"}
    began_s = time.monotonic()
    with receiving() as receiver, engine(completion("a")) as url:
        with sidecar(
            url, "--workers", "2", "--otlp-endpoint", receiver.url, "--service", "x", cwd=tmp_path, **environ
        ) as process:
            for _ in range(20):
                assert process.ask()[0] == 200
            beats = lambda: sum(  # noqa: E731
                p.as_int for m in receiver.metrics() if m.name == HEARTBEAT.name for p in m.sum.data_points
            )
            eventually(lambda: beats() >= 2)
            shown = exemplars(process)
            assert process.stop() == 0
        assert beats() <= time.monotonic() - began_s
        asked = [p.as_int for m in receiver.metrics() if m.name == REQUESTS.name for p in m.sum.data_points]
        assert sum(asked) == 20
        assert len(receiver.spans()) == 20
        assert shown  # made in the workers, shown by the parent
        assert shown <= {span.trace_id.hex() for span in receiver.spans()}
        assert {metric.name for metric in receiver.metrics()}.isdisjoint({WORKERS.name, WORKER_DEATHS.name})
        instances = {attributes(one.resource.attributes)[SERVICE_INSTANCE] for one in receiver.resource_metrics()}
        assert len(instances) == 1
        spans_of = {str(value) for path, body in receiver.accepted if "traces" in path for value in instances}
        assert all(value.encode() in body for path, body in receiver.accepted if "traces" in path for value in spans_of)


def exemplars(process: Process) -> set[str]:
    """The traces that the page in OpenMetrics points at."""
    connection = http.client.HTTPConnection("127.0.0.1", process.admin, timeout=START_S)
    try:
        connection.request("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"})
        return set(re.findall(r'# \{.*trace_id="([0-9a-f]{32})"', connection.getresponse().read().decode()))
    finally:
        connection.close()


def test_the_engine_is_asked_by_one_process_and_known_to_all(tmp_path: Path) -> None:
    page = f'{RUNNING}\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.25\n'
    write_spec(tmp_path, SPEC + "  - {name: room, signal: kv_occupancy, threshold: 10%, target: 99%}\n")
    arguments = ("--workers", "2", "--scrape-interval", "0.5", "--drain-timeout", "0")
    with (
        receiving() as receiver,
        metrics_page(page) as written,
        engine(None) as url,
        sidecar(url, *arguments, "--scrape", written.url, "--otlp-endpoint", receiver.url, cwd=tmp_path) as process,
        contextlib.ExitStack() as stack,
    ):
        began_s, asked = time.monotonic(), written.asked
        eventually(lambda: gauge(process, "firsttoken_kv_cache_occupancy_ratio") == 0.25)
        time.sleep(2.2)  # the workers are told each second
        for _ in range(8):
            client = stack.enter_context(socket.create_connection(("127.0.0.1", process.proxy)))
            client.sendall(chat())
        eventually(lambda: events(process, "room")[1] >= 2)
        polls, lasted_s = written.asked - asked, time.monotonic() - began_s
        assert polls <= lasted_s / 0.5 + 2
        assert events(process, "room")[0] == 0
        assert events(process, "room")[1] <= lasted_s  # seconds, however many workers there are
        assert process.stop() == 0
        eventually(lambda: len(receiver.spans()) == 8)
        assert {attributes(span.attributes).get(KV_AT_ARRIVAL) for span in receiver.spans()} == {0.25}


def test_labels_are_bounded_over_all_workers(tmp_path: Path) -> None:
    with engine(completion("a")) as url, sidecar(url, "--workers", "2", "--max-models", "2", cwd=tmp_path) as process:
        for number in range(60):
            assert process.ask(model=f"model-{number % 5}")[0] == 200
        found = sums(process, REQUESTS.prometheus)
        labels = {name.partition("model_name=")[2].split()[0] for name in found}
        assert len(labels) == 3
        assert "other" in labels
        assert sum(found.values()) == 60


def test_it_drains_at_sigterm_and_hurries_when_asked_twice(tmp_path: Path) -> None:
    with engine(completion("a"), chunks_s=1.0) as url, sidecar(url, "--workers", "2", cwd=tmp_path) as process:
        statuses: list[int] = []
        asking = [threading.Thread(target=lambda: statuses.append(process.ask()[0])) for _ in range(6)]
        for thread in asking:
            thread.start()
        eventually(lambda: gauge(process, "firsttoken_requests_in_flight") == 6)
        process.popen.send_signal(signal.SIGTERM)
        eventually(lambda: process.get("/readyz") == (503, "draining\n"))
        assert process.popen.wait(START_S) == 0
        for thread in asking:
            thread.join()
        assert statuses == [200] * 6
    with engine(None) as url, sidecar(url, "--workers", "2", cwd=tmp_path) as process, socket.socket() as client:
        client.connect(("127.0.0.1", process.proxy))
        client.sendall(chat())
        eventually(lambda: gauge(process, "firsttoken_requests_in_flight") == 1)
        process.popen.send_signal(signal.SIGINT)
        eventually(lambda: process.get("/readyz") == (503, "draining\n"))
        assert requests(process, "error", model="other") == 0
        process.popen.send_signal(signal.SIGINT)
        assert process.popen.wait(START_S) == 0
    assert any("1 requests were still in flight" in line for line in process.errors)


@pytest.mark.parametrize("flag", ["--listen", "--admin"])
@pytest.mark.parametrize("shares", [False, True])
def test_an_address_that_is_taken_is_told_before_anything_starts(flag: str, shares: bool, tmp_path: Path) -> None:
    with socket.socket() as taken:
        if shares:  # as the workers of another sidecar do
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        free = "--admin" if flag == "--listen" else "--listen"
        ended = run(
            "--upstream", "http://127.0.0.1:1", "--workers", "2", flag, address, free, "127.0.0.1:0", cwd=tmp_path
        )
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"firsttoken sidecar: cannot listen on {address} ({flag}): address already in use")


def run(*argv: str, cwd: Path, before: str = "pass") -> subprocess.CompletedProcess[str]:
    code = f"import sys; {before}; from sidecar.cli import main; sys.exit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *argv],
        cwd=cwd,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )


def test_workers_that_never_start_end_the_whole_with_a_reason(tmp_path: Path) -> None:
    places = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 9\n")
    broken.chmod(0o755)
    ended = run(
        "--upstream", "http://127.0.0.1:1", "--workers", "2", *places, cwd=tmp_path,
        before=f"sys.executable = {str(broken)!r}",
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (1, "")
    *tries, last = ended.stderr.splitlines()
    assert last.startswith("firsttoken sidecar: worker ")
    assert last.endswith(" ended 5 times before it took requests: see what it said above")
    assert sum("ended with exit code 9" in line for line in tries) >= 8


def test_a_unix_socket_is_shared_too(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with (
        engine(completion("a")) as url,
        sidecar(url, "--workers", "2", "--listen", f"unix:{path}", cwd=tmp_path) as process,
    ):
        assert process.places[0] == f"unix:{path}"
        for deaths in (1, 2):
            for _ in range(10):
                assert over_unix(path).startswith(b"HTTP/1.1 200 OK\r\n")
            os.kill(workers(process)[0], signal.SIGTERM)  # one alone: it drains, and the next takes its place
            eventually(lambda deaths=deaths: gauge(process, WORKER_DEATHS.prometheus) == deaths)  # type: ignore[misc]
            eventually(lambda: gauge(process, WORKERS.prometheus) == 2)
        eventually(lambda: requests(process) == 20)  # a worker on a busy machine may answer the next page, not this one
        assert process.stop() == 0
        assert not path.exists()


def over_unix(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(START_S)
        client.connect(str(path))
        client.sendall(chat())
        answer = b""
        while not answer.endswith(b"0\r\n\r\n"):
            answer += client.recv(1 << 16)
        return answer


def test_over_tls_every_worker_presents_the_certificate_that_stands_there_now(tmp_path: Path) -> None:
    shown, shown_key = tmp_path / "c.pem", tmp_path / "c.key"

    def install(name: str) -> None:
        shown.write_text(Path(certificate(name)).read_text())
        shown_key.write_text(Path(key(name)).read_text())

    def serials(port: int) -> set[object]:
        found = set()
        for _ in range(12):
            with connected(port, client_context()) as made:
                made.sendall(chat())
                assert made.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")
                certificate_ = made.getpeercert()
                assert certificate_ is not None
                found.add(certificate_["serialNumber"])
        return found

    install("server")
    tls = ("--tls-cert", str(shown), "--tls-key", str(shown_key))
    with engine(completion("a")) as url, sidecar(url, "--workers", "2", *tls, cwd=tmp_path) as process:
        port = tcp(process.places[0])[1]
        assert process.places[0].startswith("https://")
        before = serials(port)
        assert len(before) == 1
        install("renewed")
        process.popen.send_signal(signal.SIGHUP)
        eventually(lambda: len(serials(port) | before) == 2 and serials(port).isdisjoint(before))
        assert process.stop() == 0
