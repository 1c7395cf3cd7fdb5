"""What the flags of TLS mean together, read as the command reads them."""

from dataclasses import replace
from pathlib import Path

import pytest

from sidecar.cli import read
from sidecar.configuration.options import Options
from sidecar.settings import UsageError
from sidecar.transport.tls import Presented, Trust
from tests.sidecar.certificates import AUTHORITY, certificate, key

PAIR = ("--tls-cert", certificate("server"), "--tls-key", key("server"))
OWN = ("--upstream-cert", certificate("client"), "--upstream-key", key("client"))
HTTP, HTTPS = ("--upstream", "http://127.0.0.1:1"), ("--upstream", "HTTPS://127.0.0.1:1")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def options(*argv: str, **environ: str) -> Options:
    return read(list(argv), environ)


def test_clients_are_shown_what_the_flags_name() -> None:
    assert options(*HTTP).presented is None
    assert options(*HTTP, *PAIR).presented == Presented(certificate("server"), key("server"))
    assert options(*HTTP, *PAIR, "--tls-client-ca", AUTHORITY).presented == Presented(
        certificate("server"), key("server"), AUTHORITY
    )
    environ = {"FIRSTTOKEN_TLS_CERT": certificate("server"), "FIRSTTOKEN_TLS_KEY": key("server")}
    assert options(*HTTP, **environ).presented == Presented(certificate("server"), key("server"))


def test_the_server_is_believed_as_the_flags_say() -> None:
    assert options(*HTTPS).trust == options(*HTTP).trust == Trust()
    assert options(*HTTPS, "--upstream-ca", AUTHORITY, "--upstream-server-name", "n").trust == Trust(AUTHORITY, "n")
    assert options(*HTTPS, "--upstream-insecure").trust == Trust(insecure=True)
    assert options(*HTTPS, FIRSTTOKEN_UPSTREAM_INSECURE="true").trust == Trust(insecure=True)
    assert not options(*HTTPS, FIRSTTOKEN_UPSTREAM_INSECURE="0").trust.insecure


def test_the_server_is_shown_what_the_flags_name() -> None:
    own = Trust(certificate=certificate("client"), key=key("client"))
    assert options(*HTTPS, *OWN).trust == own
    assert options(*HTTPS, *OWN, "--upstream-insecure").trust == replace(own, insecure=True)


def test_a_page_over_https_is_enough_for_them_to_mean_something() -> None:
    assert options("--scrape", "https://e:1/metrics", "--upstream-ca", AUTHORITY).trust.ca == AUTHORITY
    assert options(*HTTP, "--scrape", "https://e:1/metrics", "--upstream-ca", AUTHORITY).trust.ca == AUTHORITY


BAD = {
    "a certificate without its key": ((*HTTP, *PAIR[:2]), "--tls-cert and --tls-key belong together: give both"),
    "a key without its certificate": ((*HTTP, *PAIR[2:]), "--tls-cert and --tls-key belong together: give both"),
    "an authority of clients without either": ((*HTTP, "--tls-client-ca", AUTHORITY), "give --tls-cert and --tls-key"),
    "a unix socket with TLS": ((*HTTP, *PAIR, "--listen", "unix:/run/s"), "--listen unix:/run/s needs no TLS"),
    "a certificate that is not there": (
        (*HTTP, "--tls-cert", "no", "--tls-key", key("server")),
        "--tls-cert no cannot",
    ),
    "an authority of the server that is not there": (
        (*HTTPS, "--upstream-ca", "no"),
        "--upstream-ca no cannot be read",
    ),
    "an authority for a server without TLS": ((*HTTP, "--upstream-ca", AUTHORITY), "--upstream-ca speaks of TLS, and"),
    "a name for a server without TLS": (("--scrape", "http://e:1", "--upstream-server-name", "n"), "write --upstream "),
    "no check where there is nothing to check": ((*HTTP, "--upstream-insecure"), "--upstream-insecure speaks of TLS"),
    "a certificate for a server without TLS": ((*HTTP, *OWN), "--upstream-cert speaks of TLS, and"),
    "a certificate of our own without its key": ((*HTTPS, *OWN[:2]), "--upstream-cert and --upstream-key belong"),
    "a key of our own without its certificate": ((*HTTPS, *OWN[2:]), "--upstream-cert and --upstream-key belong"),
    "a certificate of our own that is not there": (
        (*HTTPS, "--upstream-cert", "no", "--upstream-key", key("client")),
        "--upstream-cert no cannot be read",
    ),
    "a check that is none": (
        (*HTTPS, "--upstream-insecure", "--upstream-ca", AUTHORITY),
        "--upstream-ca and --upstream-insecure contradict each other: leave out one",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_flags_are_one_line(case: str) -> None:
    argv, words = BAD[case]
    with pytest.raises(UsageError) as error:
        options(*argv)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_variable_that_names_no_file_is_said_where_it_matters() -> None:
    with pytest.raises(UsageError, match=r"^SSL_CERT_FILE=nowhere cannot be read: .*: name a PEM file$"):
        options(*HTTPS, SSL_CERT_FILE="nowhere")
    assert options(*HTTP, SSL_CERT_FILE="nowhere").trust == Trust()
    assert options(*HTTPS, "--upstream-ca", AUTHORITY, SSL_CERT_FILE="nowhere").trust.ca == AUTHORITY
    assert options(*HTTPS, "--upstream-insecure", SSL_CERT_FILE="nowhere").trust.insecure


def test_all_that_a_reload_reads_is_watched(elsewhere: Path) -> None:
    spec = elsewhere / "slo.yaml"
    with pytest.raises(UsageError, match=r"^--watch-slo: there is no slo\.yaml here: name the one to watch with --slo"):
        options(*HTTP, "--watch-slo")
    spec.write_text("service: chat\nobjectives: [{name: a, signal: ttft, percentile: 95, threshold: 1s}]\n")
    assert options(*HTTP).watched is None
    watched = options(*HTTPS, *PAIR, "--upstream-ca", AUTHORITY, *OWN, "--watch-slo").watched
    assert watched is not None
    names = ("slo.yaml", certificate("server"), key("server"), AUTHORITY, certificate("client"), key("client"))
    assert watched.paths == tuple(map(Path, names))
    assert [stamp is not None for _, stamp in watched.seen] == [True] * 6
    assert options(*HTTP, FIRSTTOKEN_WATCH_SLO="1").watched is not None
