"""What the command line decides, and that bad input is one line that says what would be right."""

import logging
import os
from pathlib import Path

import pytest

from sidecar import limits
from sidecar.address import HostPort
from sidecar.cli import read
from sidecar.configuration.options import Options
from sidecar.settings import UsageError
from sidecar.transport.upstream import Target

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
    assert (made.listen, made.admin) == (HostPort("127.0.0.1", 8001), HostPort("127.0.0.1", 9464))
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
    assert made.listen == HostPort("0.0.0.0", 6)
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


def test_one_process_serves_unless_told_otherwise() -> None:
    assert options().workers == 1
    assert options("--workers", "3").workers == 3
    assert options(FIRSTTOKEN_WORKERS="2").workers == 2
    made = options("--log-level", "debug", "--log-format", "json")
    assert (made.log_level, made.log_format) == ("debug", "json")


def test_counts_are_asked_for_where_that_is_known_to_be_safe_unless_told_otherwise() -> None:
    assert options().inject_usage == "auto"
    assert options().shed == "shadow"
    assert options("--shed", "on").plan().shed == "on"
    assert options(FIRSTTOKEN_SHED="off").shed == "off"
    assert options("--inject-usage", "on").inject_usage == "on"
    assert not options().manners.drain_disconnected
    assert options("--on-disconnect", "drain").manners.drain_disconnected
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
    "a scrape that is no URL": ([*UP, "--scrape", "metrics"], "--scrape: "),
    "a share above one": ([*UP, "--sample", "2"], "from 0 to 1"),
    "a time that is none": ([*UP, "--connect-timeout", "soon"], "write a number"),
    "a page without a scheme": (["--scrape", "foo"], "foo is no URL of a server: write http://HOST:PORT"),
    "itself behind it": ([*UP, "--listen", "localhost:8000"], "is the --upstream itself"),
    "a class header that none can be": ([*UP, "--class-header", "my class"], "no header can have this name"),
    "an unknown way with those who leave": ([*UP, "--on-disconnect", "wait"], "use cancel or drain"),
    "an unknown way with counts": ([*UP, "--inject-usage", "yes"], "use auto, on or off"),
    "an unknown way to shed": ([*UP, "--shed", "yes"], "use shadow, on or off"),
    "no workers": ([*UP, "--workers", "0"], "--workers 0: write a number from 1 to 64"),
    "more workers than there may be": ([*UP, "--workers", "65"], "from 1 to 64"),
    "half a byte": ([*UP, "--max-body", "1.5"], "--max-body 1.5: write a whole number"),
    "half a model": ([*UP, "--max-models", "2.5"], "--max-models 2.5: write a whole number"),
    "half a worker": ([*UP, "--workers", "1.5"], "--workers 1.5: write a whole number"),
    "workers without requests": (["--scrape", "http://e:1", "--workers", "2"], "without --upstream URL"),
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


@pytest.mark.parametrize("name", ["CERTIFICATE", "CLIENT_CERTIFICATE", "CLIENT_KEY"])
def test_a_certificate_that_is_not_there_is_said_before_the_first_export(name: str) -> None:
    variable = f"OTEL_EXPORTER_OTLP_{name}"
    with pytest.raises(UsageError, match=rf"^{variable}=nowhere.pem cannot be read: .*: name a PEM file"):
        options("--otlp-endpoint", "https://c:4318", **{variable: "nowhere.pem"})


def test_the_plan_is_an_instance_of_its_own_each_time(elsewhere: Path) -> None:
    (elsewhere / "slo.yaml").write_text(ONE)
    made = options("--gpu", "off", "--scrape", "off", "--sample", "0.5", CUDA_VISIBLE_DEVICES="1")
    plan, again = made.plan(), made.plan()
    assert plan.instance != again.instance
    assert (plan.service, plan.source, plan.spec, plan.spec_paths) == ("chat", "proxy", made.spec, made.spec_paths)
    assert (plan.models, plan.scrape, plan.gpu, plan.visible_gpus) == (True, False, False, "1")
    assert (plan.sample_ratio, plan.max_models, plan.config_ok) == (0.5, limits.MAX_MODELS, True)
    assert read(["--scrape", "http://e:1/m"], {}).plan().source == "engine"
