import json
import logging
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sidecar import limits
from sidecar.cli import UsageError, _JsonLines, read
from sidecar.service import Address, Options
from sidecar.upstream import Target
from tests.sidecar.process import environment

ROOT = Path(__file__).parents[2]
UP = ["--upstream", "http://127.0.0.1:8000"]
ONE = "service: chat\nobjectives:\n  - {name: first, signal: ttft, percentile: 95, threshold: 300ms}\n"
TWO = f"{ONE}---\n{ONE.replace('chat', 'code')}"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test finds a slo.yaml by chance, and none keeps the log of another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.root, "handlers", list(logging.root.handlers))
    return tmp_path


def options(*argv: str, **environ: str) -> Options:
    return read([*UP, *argv], environ)


def test_an_upstream_is_all_it_needs() -> None:
    made = options()
    assert made.upstream == Target("http", "127.0.0.1", 8000)
    assert (made.listen, made.admin) == (Address("127.0.0.1", 8001), Address("127.0.0.1", 9464))
    assert (made.service, made.spec) == ("unknown_service", None)
    assert made.export.traces is None
    assert made.scrape.on
    assert made.manners.host is None
    assert made.sample_ratio == 1.0


def test_a_flag_wins_over_its_variable_and_that_over_the_default() -> None:
    environ = {"FIRSTTOKEN_UPSTREAM": "http://e:1", "FIRSTTOKEN_MAX_MODELS": "7", "FIRSTTOKEN_LISTEN": "127.0.0.1:5"}
    made = read(["--listen", "0.0.0.0:6"], environ)
    assert made.upstream == Target("http", "e", 1)
    assert made.max_models == 7
    assert made.listen == Address("0.0.0.0", 6)
    assert made.drain_s == limits.DRAIN_S


def test_the_host_header_can_be_the_upstreams() -> None:
    assert options("--host-header", "upstream").manners.host == b"127.0.0.1:8000"


def test_scrape_can_be_named_or_off() -> None:
    assert options("--scrape", "http://e:1/m").scrape.url == "http://e:1/m"
    assert not options("--scrape", "off").scrape.on


def test_a_page_to_scrape_is_enough_where_nothing_is_stood_before() -> None:
    made = read(["--scrape", "http://e:1/metrics", "--engine", "vllm"], {})
    assert made.upstream is None
    assert (made.scrape.url, made.scrape.engine) == ("http://e:1/metrics", "vllm")
    assert made.manners.host is None
    assert read(["--host-header", "upstream"], {"FIRSTTOKEN_SCRAPE": "http://e:1"}).manners.host is None


def test_gpus_are_read_unless_told_otherwise() -> None:
    assert options().gpu
    assert options().visible_gpus is None
    assert options(CUDA_VISIBLE_DEVICES="1,2").visible_gpus == "1,2"
    assert not options("--gpu", "off").gpu
    assert not options(FIRSTTOKEN_GPU="off").gpu


def test_counts_are_asked_for_where_that_is_known_to_be_safe_unless_told_otherwise() -> None:
    assert options().inject_usage == "auto"
    assert options("--inject-usage", "on").inject_usage == "on"
    assert options(FIRSTTOKEN_INJECT_USAGE="off").inject_usage == "off"


def test_the_service_is_the_flags_the_environments_or_the_specs(elsewhere: Path) -> None:
    (elsewhere / "slo.yaml").write_text(ONE)
    assert options().service == "chat"
    assert options().spec is not None
    (elsewhere / "two.yaml").write_text(TWO)
    assert options("--slo", "two.yaml", OTEL_SERVICE_NAME="code").service == "code"
    assert options("--slo", "two.yaml", "--service", "chat", OTEL_SERVICE_NAME="code").service == "chat"


def test_specs_can_be_several_files_or_come_from_the_environment(elsewhere: Path) -> None:
    (elsewhere / "a.yaml").write_text(ONE)
    (elsewhere / "b.yaml").write_text(ONE.replace("chat", "code"))
    for made in (
        options("--slo", "a.yaml", "--slo", "b.yaml", "--service", "code"),
        options("--service", "code", FIRSTTOKEN_SLO=f"a.yaml{os.pathsep}b.yaml"),
    ):
        assert made.spec is not None
        assert made.spec.service == "code"


def test_a_service_that_the_default_spec_does_not_describe_is_warned_of(
    elsewhere: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (elsewhere / "slo.yaml").write_text(ONE)
    logging.getLogger().addHandler(caplog.handler)
    made = options("--service", "other")
    assert (made.service, made.spec) == ("other", None)


def test_a_non_loopback_admin_address_needs_a_token_or_the_word(elsewhere: Path) -> None:
    (elsewhere / "token").write_text("s3cret\n")
    assert options("--admin", "0.0.0.0:1", "--token-file", "token").admin_token == "s3cret"
    assert options("--admin", "0.0.0.0:1", "--insecure").admin_token is None
    assert options("--admin", "[::1]:1").admin_token is None
    assert options("--listen", "0.0.0.0:1").listen.host == "0.0.0.0"


BAD = {
    "no upstream": ([], "--upstream URL is missing"),
    "nothing to scrape either": (["--scrape", "off"], "or give --scrape URL alone"),
    "an engine without a page to scrape": (["--scrape", "http://e:1", "--engine", "ollama"], "with --upstream URL"),
    "an upstream that is none": (["--upstream", "engine:8000"], "write http://HOST:PORT"),
    "an unknown flag": ([*UP, "--bogus"], "--bogus"),
    "an address without a port": ([*UP, "--listen", "localhost"], "write HOST:PORT"),
    "a port that is none": ([*UP, "--admin", "127.0.0.1:99999"], "write HOST:PORT"),
    "an unknown engine": ([*UP, "--engine", "gpt"], "vllm"),
    "a scrape that is no URL": ([*UP, "--scrape", "metrics"], "write http://HOST:PORT"),
    "a share above one": ([*UP, "--sample", "2"], "from 0 to 1"),
    "a time that is none": ([*UP, "--connect-timeout", "soon"], "write a number"),
    "an unknown way with counts": ([*UP, "--inject-usage", "yes"], "use auto, on or off"),
    "an unknown way with GPUs": ([*UP, "--gpu", "on"], "use auto or off"),
    "an unknown host header": ([*UP, "--host-header", "x"], "keep or upstream"),
    "a missing spec": ([*UP, "--slo", "nowhere.yaml"], "nowhere.yaml:1:1: cannot be read"),
    "an open admin address": ([*UP, "--admin", "0.0.0.0:1"], "--token-file FILE"),
    "a missing token": ([*UP, "--token-file", "nowhere"], "nowhere cannot be read"),
    "an empty token": ([*UP, "--token-file", "empty"], "is empty"),
    "a bad endpoint": ([*UP, "--otlp-endpoint", "collector"], "write http://HOST:PORT"),
    "an unknown level": ([*UP, "--log-level", "loud"], "use debug"),
    "an unknown format": ([*UP, "--log-format", "xml"], "text or json"),
    "two services and none chosen": ([*UP, "--slo", "two.yaml"], "chat, code"),
    "a service that the named spec lacks": (
        [*UP, "--slo", "two.yaml", "--service", "x"],
        "correct the service or the spec",
    ),
    "a spec with a fault": ([*UP, "--slo", "bad.yaml"], "bad.yaml:3"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_that_says_what_would_be_right(case: str, elsewhere: Path) -> None:
    argv, words = BAD[case]
    (elsewhere / "two.yaml").write_text(TWO)
    (elsewhere / "bad.yaml").write_text(ONE.replace("95", "100"))
    (elsewhere / "empty").write_text("")
    with pytest.raises(UsageError) as error:
        read(argv, {})
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def run(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sidecar", *argv],
        cwd=cwd,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_command_ends_with_2_and_one_line(elsewhere: Path) -> None:
    ended = run("--upstream", "nonsense", cwd=elsewhere)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith("firsttoken sidecar: nonsense is no URL")


@pytest.mark.parametrize("name", ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"])
def test_a_certificate_that_is_not_there_is_said_before_the_first_export(name: str) -> None:
    variable = f"OTEL_EXPORTER_OTLP_{name}"
    with pytest.raises(UsageError, match=rf"^{variable}=nowhere.pem cannot be read: .*: name a PEM file"):
        options("--otlp-endpoint", "https://c:4318", **{variable: "nowhere.pem"})


@pytest.mark.parametrize("flag", ["--listen", "--admin"])
def test_a_port_in_use_is_named_with_its_flag(flag: str, elsewhere: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        free = "--admin" if flag == "--listen" else "--listen"
        ended = run(*UP, flag, address, free, "127.0.0.1:0", cwd=elsewhere)
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"firsttoken sidecar: cannot listen on {address} ({flag}): address already in use")


def test_help_and_version(elsewhere: Path) -> None:
    assert "--upstream URL" in run("--help", cwd=elsewhere).stdout
    assert run("--version", cwd=elsewhere).stdout.startswith("firsttoken ")


def test_the_command_line_is_light() -> None:
    heavy = ("torch", "sqlalchemy", "fastapi", "uvloop", "prometheus_client", "opentelemetry", "grpc", "pydantic")
    code = f"import sidecar.cli, sys; print([m for m in {heavy!r} if m in sys.modules])"
    best_s = float("inf")
    for _ in range(3):
        began_s = time.monotonic()
        ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        best_s = min(best_s, time.monotonic() - began_s)
    assert ended.stdout.strip() == "[]"
    assert best_s < 5  # 0.1 s on an idle machine


def test_the_process_loads_nothing_of_the_collectors_or_the_demos() -> None:
    heavy = ("torch", "sqlalchemy", "fastapi", "grpc", "grafanalib", "collector", "demo_server", "numpy")
    code = f"import sidecar.service, sys; print([m for m in {heavy!r} if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_a_log_line_can_be_json() -> None:
    record = logging.LogRecord("x", logging.WARNING, "f", 1, "a %s", ("b",), None)
    assert json.loads(_JsonLines().format(record)) | {"at": ""} == {"at": "", "level": "warning", "message": "a b"}
