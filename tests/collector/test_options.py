"""Flags to settings: what is meant, and one line for what cannot be."""

from pathlib import Path

import pytest

from collector.cli import parser
from collector.doors.address import Address
from collector.errors import TlsError, UsageError
from collector.options import Settings, settings, switched_on, tick_s
from slo.source import SpecError
from tests.collector.support import SPEC
from tests.sidecar.certificates import AUTHORITY, certificate, key


@pytest.fixture(autouse=True)
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slo.yaml").write_text(SPEC)
    (tmp_path / "token").write_text("s3cret\n")
    (tmp_path / "database").write_text("postgresql://u:pw@h/d\n")
    (tmp_path / "empty").write_text("\n")


def read(*typed: str, environ: dict[str, str] | None = None) -> Settings:
    return settings(parser(environ or {}).parse_args(typed), typed=typed)


def test_defaults() -> None:
    found = read()
    assert (found.listen, found.tick_s) == (Address("127.0.0.1", 4318), 10)
    assert found.grpc == Address("127.0.0.1", 4317, is_usual=True)
    assert (found.identity, found.watched) == (None, None)
    assert found.database.render_as_string() == "sqlite+pysqlite:///firsttoken.db"
    assert [one.service for one in found.specs] == ["chat"]
    assert (found.alertmanagers, found.webhook, found.token, found.external_url) == ([], None, None, None)
    assert (found.retention_s, found.drain_s, found.max_series) == (35 * 86400, 10, 10_000)


def test_a_flag_wins_over_the_environment_and_that_over_the_default() -> None:
    environ = {
        "FIRSTTOKEN_TICK": "5s",
        "FIRSTTOKEN_LISTEN": "127.0.0.2:1",
        "FIRSTTOKEN_ALERTMANAGER": "http://a,http://b",
    }
    found = read("--tick", "2s", environ=environ)
    assert (found.tick_s, found.listen) == (2, Address("127.0.0.2", 1))
    assert found.alertmanagers == ["http://a", "http://b"]
    assert read("--alertmanager", "http://c", "--alertmanager", "http://d", environ=environ).alertmanagers == [
        *("http://c", "http://d")
    ]


def test_an_empty_variable_counts_as_not_set() -> None:
    names = ("SLO", "LISTEN", "GRPC", "ALERTMANAGER", "WEBHOOK", "TOKEN_FILE", "DATABASE_FILE", "TLS_CERT", "TICK")
    found = read(environ={f"FIRSTTOKEN_{name}": "" for name in names})
    assert (found.alertmanagers, found.webhook, found.token, found.identity) == ([], None, None, None)
    assert (found.listen, list(map(str, found.slo))) == (read().listen, ["slo.yaml"])
    assert read(environ={"FIRSTTOKEN_ALERTMANAGER": "http://a, http://b"}).alertmanagers == ["http://a", "http://b"]


def test_a_file_that_holds_no_url_is_not_shown(tmp_path: Path) -> None:
    for text in ("hunter2", "postgresql:/u:hunter2@h/d", "postgresql://u:hunter2@h/d\nhunter2"):
        (tmp_path / "secret").write_text(text)
        with pytest.raises(UsageError, match="it must hold one URL alone") as caught:
            read("--database-file", "secret")
        assert "hunter2" not in str(caught.value)


def test_secrets_come_from_files_or_the_environment() -> None:
    assert read("--listen", "0.0.0.0:1", "--token-file", "token").token == "s3cret"
    assert read("--database-file", "database").database.password == "pw"
    environ = {"FIRSTTOKEN_DATABASE": "postgresql://u:pw@h/d", "FIRSTTOKEN_WEBHOOK": "http://u:pw@h/"}
    assert read(environ=environ).database.password == "pw"
    assert read(environ=environ).webhook == "http://u:pw@h/"


def test_grpc_is_named_left_or_off() -> None:
    assert read("--grpc", "127.0.0.1:4317").grpc == Address("127.0.0.1", 4317)
    assert read("--grpc", "off").grpc is None
    assert read(environ={"FIRSTTOKEN_GRPC": "off"}).grpc is None
    assert read("--grpc", "[::1]:0", environ={"FIRSTTOKEN_GRPC": "off"}).grpc == Address("::1", 0)


TLS = ("--tls-cert", certificate("server"), "--tls-key", key("server"))


def test_tls_is_for_both_listeners() -> None:
    identity = read(*TLS, "--tls-client-ca", AUTHORITY).identity
    assert identity is not None
    assert identity.pem.client_ca == Path(AUTHORITY).read_bytes()
    with pytest.raises(TlsError, match="--tls-cert nothing cannot be read"):
        read("--tls-cert", "nothing", "--tls-key", key("server"))


def test_what_is_watched_is_what_is_read() -> None:
    found = read("--watch-slo", *TLS, "--tls-client-ca", AUTHORITY).watched
    assert found is not None
    assert list(map(str, found.paths)) == ["slo.yaml", certificate("server"), key("server"), AUTHORITY]
    assert read(environ={"FIRSTTOKEN_WATCH_SLO": "1"}).watched is not None


def test_switches_in_the_environment() -> None:
    assert [switched_on("V", word) for word in ("1", "true", "Yes", " on ")] == [True] * 4
    assert [switched_on("V", word) for word in ("", "0", "false", "no", "OFF")] == [False] * 5
    with pytest.raises(UsageError, match="FIRSTTOKEN_INSECURE=perhaps: write 1 or 0"):
        read(environ={"FIRSTTOKEN_INSECURE": "perhaps"})


REFUSED = {
    "a password typed": (("--database", "postgresql://u:pw@h/d"), "--database-file"),
    "a webhook's password typed": (("--webhook", "http://u:pw@h/"), "FIRSTTOKEN_WEBHOOK"),
    "two databases": (("--database", "a.db", "--database-file", "database"), "one of them"),
    "another database": (("--database", "mysql://h/d"), "sqlite or postgresql"),
    "a missing file": (("--token-file", "nothing"), "--token-file nothing cannot be read"),
    "an empty file": (("--token-file", "empty"), "is empty"),
    "beyond loopback": (("--listen", "0.0.0.0:4318"), "--token-file FILE, or --insecure"),
    "a name beyond loopback": (("--listen", "example.org:4318"), "--insecure"),
    "gRPC beyond loopback": (("--grpc", "0.0.0.0:4317"), "--grpc 0.0.0.0:4317 is beyond loopback"),
    "no address of gRPC": (("--grpc", "on"), "--grpc on: write HOST:PORT, as 127.0.0.1:4318, or off"),
    "a certificate alone": (("--tls-cert", "c.pem"), "--tls-cert and --tls-key belong together: give both"),
    "a key alone": (("--tls-key", "c.key"), "--tls-cert and --tls-key belong together: give both"),
    "an authority alone": (("--tls-client-ca", "c.pem"), "give --tls-cert and --tls-key too"),
    "no port": (("--listen", "127.0.0.1"), "HOST:PORT"),
    "too high a port": (("--listen", "127.0.0.1:99999"), "HOST:PORT"),
    "an uneven tick": (("--tick", "7s"), "a minute must be made of whole ticks"),
    "too long a tick": (("--tick", "2m"), "60s"),
    "a tick without a unit": (("--tick", "10"), "--tick: 10 is not a duration"),
    "too short a tick": (("--tick", "500ms"), "whole number of seconds"),
    "no series": (("--max-series", "0"), "--max-series 0"),
    "no URL": (("--alertmanager", "localhost:9093"), "write a URL"),
    "no host": (("--webhook", "http://"), "write a URL"),
    "two who are told": (("--webhook", "http://a", "--alertmanager", "http://b"), "told twice"),
    "an unknown flag": (("--nonsense",), "--help"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_one_line_that_says_what_would_be_right(case: str) -> None:
    typed, says = REFUSED[case]
    with pytest.raises(UsageError) as caught:
        read(*typed)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "pw" not in str(caught.value).replace("http://u:pw@h/", "")


def test_a_missing_spec_is_an_error() -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        read("--slo", "missing.yaml")


def test_insecure_is_said_aloud() -> None:
    assert read("--listen", "0.0.0.0:1", "--insecure").token is None


def test_a_minute_is_a_tick() -> None:
    assert tick_s("1m") == 60
