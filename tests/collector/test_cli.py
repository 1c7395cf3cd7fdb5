"""The command as a process: exit codes, single lines, and nothing half done."""

import logging
import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from collector import cli
from collector.clickhouse import definitions
from collector.storage import ddl
from tests.collector.support import SPEC, collector, refusal
from tests.sidecar.certificates import certificate, key


def one_line(stderr: str) -> str:
    assert stderr.endswith("\n")
    assert stderr.count("\n") == 1, stderr
    assert stderr.startswith("firsttoken collector: ")
    return stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, stderr = refusal(tmp_path, "--listen", address)
    assert code == 2
    assert f"--listen {address}" in one_line(stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slo.yaml"]


def test_a_port_of_grpc_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, stderr = refusal(tmp_path, "--listen", "127.0.0.1:0", "--grpc", address)
    assert code == 2
    assert f"--grpc {address}: Address already in use: choose another address" in one_line(stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slo.yaml"]


def test_files_that_make_no_tls(tmp_path: Path) -> None:
    pair = ("--tls-cert", certificate("server"), "--tls-key", key("renewed"))
    code, stderr = refusal(tmp_path, "--listen", "127.0.0.1:0", *pair)
    assert code == 2
    assert "do not belong together" in one_line(stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slo.yaml"]


def test_a_database_that_cannot_be_written(tmp_path: Path) -> None:
    missing = f"sqlite:///{tmp_path}/no/such/a.db"
    code, stderr = refusal(tmp_path, "--listen", "127.0.0.1:0", "--grpc", "off", "--database", missing)
    assert code == 2
    assert "no/such/a.db cannot be used: No such file or directory: name a file in a folder" in one_line(stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slo.yaml"]


def test_the_tables_of_a_collector_that_runs_are_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    database = f"sqlite:///{tmp_path}/a.db"
    with collector(tmp_path, "--database", database):
        with sqlite3.connect(tmp_path / "a.db") as connection:
            connection.execute("UPDATE schema_version SET version_num = '0001'")
        code, stderr = refusal(other, "--listen", "127.0.0.1:0", "--grpc", "off", "--database", database)
        left = connection.execute("SELECT version_num FROM schema_version").fetchall()
        connection.close()
    assert code == 2
    assert "in use by another collector" in one_line(stderr)
    assert left == [("0001",)]


def run(*typed: str) -> int:
    return cli.main(list(typed))


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("FIRSTTOKEN_")]:
        monkeypatch.delenv(name)


def test_a_faulty_spec(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "slo.yaml").write_text(SPEC.replace("percentile: 95", "percentile: 100") + "nonsense: 1\n")
    assert run() == 2
    stderr = one_line(capsys.readouterr().err)
    assert "slo.yaml:" in stderr
    assert "100%" in stderr
    assert "nonsense" in stderr


@pytest.mark.parametrize(
    "typed", [("--tick", "x"), ("--grpc", "x"), ("--log-level", "loud"), ("--log-format", "xml"), ("--what",)]
)
def test_bad_usage(capsys: pytest.CaptureFixture[str], typed: tuple[str, ...]) -> None:
    assert run(*typed) == 2
    one_line(capsys.readouterr().err)


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str], dialect: str) -> None:
    assert run("schema", "--dialect", dialect) == 0
    printed = capsys.readouterr().out
    assert printed == ddl.ddl(dialect) + "\n"
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
        connection.executescript(printed)
        connection.close()


@pytest.mark.parametrize("cluster", [None, "main"])
def test_the_schema_of_clickhouse_is_printed(capsys: pytest.CaptureFixture[str], cluster: str | None) -> None:
    assert run("schema", "--dialect", "clickhouse", *(() if cluster is None else ("--cluster", cluster))) == 0
    assert capsys.readouterr().out == definitions.script(cluster) + "\n"


def test_a_cluster_is_of_clickhouse(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schema", "--cluster", "main") == 2
    assert "use --dialect clickhouse" in one_line(capsys.readouterr().err)


def test_a_mirror_is_asked_for_by_its_word(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("mirror") == 2
    assert capsys.readouterr().err.startswith("firsttoken collector mirror: --clickhouse")


def test_a_schema_of_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schema", "--dialect", "oracle") == 2
    one_line(capsys.readouterr().err)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run("--version")
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("firsttoken ")


def test_it_is_a_module_too() -> None:
    done = subprocess.run([sys.executable, "-m", "collector", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    for flag in (
        "--slo",
        "--database",
        "--listen",
        "--grpc",
        "--tls-cert",
        "--watch-slo",
        "--tick",
        "--alertmanager",
        "--webhook",
        "--max-series",
    ):
        assert flag in done.stdout


def test_logs_in_json_are_one_object_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    import json

    cli._log_to_stderr("info", "json")
    logging.getLogger("x").info("two\nlines")
    try:
        raise ValueError("inner")
    except ValueError:
        logging.getLogger("x").exception("fault")
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["level"], first["message"]) == ("info", "two\nlines")
    assert "ValueError: inner" in second["trace"]
    assert logging.getLogger("httpx").level == logging.WARNING
