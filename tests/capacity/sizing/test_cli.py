"""`firsttoken capacity size`, from flags to files and rows."""

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from capacity.cli import main
from capacity.stored.database import named_database
from capacity.stored.results import Found, keep
from collector import schema
from tests.capacity.sizing.test_measured import certified
from tests.capacity.sizing.test_replica import OBJECTIVES, SPEC
from tests.capacity.sizing.traces import bursts
from tests.capacity.stored.test_recorded import BEGIN_S, a_day
from tests.collector.storage.test_commit import after


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A trace and a spec in the folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    for name in ("FIRSTTOKEN_TRACE", "FIRSTTOKEN_CAPACITY", "FIRSTTOKEN_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "slo.yaml").write_text(SPEC)
    demand = bursts()
    rows = (f"{at},{a},{b}" for at, (a, b) in zip(demand.times_s.tolist(), demand.tokens, strict=True))
    (tmp_path / "t.csv").write_text("time_s,input_tokens,output_tokens\n" + "\n".join(rows))
    return "t.csv"


def test_a_trace_is_sized_by_hand(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["size", "--trace", trace, "--capacity", "0.5", "--json", "s.json", "--html", "s.html", "--png", "s.png"])
        == 0
    )
    assert Path("s.png").read_bytes().startswith(b"\x89PNG")
    made: dict[str, Any] = json.loads(Path("s.json").read_text())
    out = capsys.readouterr().out
    assert made["says"] in out
    assert made["replicas"] > made["poisson_replicas"] > 1
    assert made["settings"]["trace"] == trace
    assert made["says"] in Path("s.html").read_text()


def test_a_trace_is_sized_by_a_certificate_and_kept(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    after("firsttoken.db")
    path = certified(Path())
    argv = ["size", "--trace", trace, "--capacity", f"chat={path}", "--database", "firsttoken.db", "--json", "s.json"]
    assert main([*argv, "--quiet"]) == 0
    made = json.loads(Path("s.json").read_text())
    (row,) = after("firsttoken.db", lambda c: c.execute(select(schema.capacity_result)).mappings().all())
    assert (row["kind"], row["service"], row["model"], row["target"]) == ("size", "chat", "m", "")
    assert (row["replicas"], row["headroom"], row["certified_rps"]) == (made["replicas"], made["headroom"], 5)
    assert json.loads(row["result"]) == made
    spec = "", "chat", "m", "http://h"
    url = named_database(argparse.Namespace(database="firsttoken.db", database_file=None), {})
    assert url is not None
    keep(url, Found(60, "certify", *spec, json.loads(Path(path).read_text())))
    Path(path).unlink()
    assert main(["size", "--trace", trace, "--database", "firsttoken.db", "--json", "again.json", "--quiet"]) == 0
    assert json.loads(Path("again.json").read_text())["replicas"] == made["replicas"]
    assert capsys.readouterr().out == ""


def test_what_a_collector_has_recorded_is_sized(trace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trace
    after("firsttoken.db", a_day)
    argv = ["size", "--trace", "recorded", "--capacity", "0.6", "--database", "firsttoken.db", "--json", "s.json"]
    assert main([*argv, "--quiet"]) == 0
    made = json.loads(Path("s.json").read_text())
    assert made["poisson_replicas"] == made["replay_replicas"] == 7  # 4 requests/s
    assert made["demand"]["mean_tokens"] == pytest.approx([600, 100], rel=0.05)
    assert "bursts within steps of up to 10 s are not recorded" in made["warnings"][-1]
    monkeypatch.setattr("capacity.sizing.cli.time.time", lambda: BEGIN_S + 1.5 * 3600)
    assert main([*argv, "--hours", "1", "--quiet"]) == 0
    assert json.loads(Path("s.json").read_text())["demand"]["requests"] == made["demand"]["requests"] / 2


def test_what_has_changed_since_the_certificate_is_said_or_refused(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def sized_for(**objective: str) -> int:
        path = Path(certified(Path()))
        made = json.loads(path.read_text())
        promises = [one.model_dump(mode="json", exclude_defaults=True) for one in OBJECTIVES]
        promises[0] |= objective
        path.write_text(json.dumps(made | {"settings": made["settings"] | {"objectives": promises, "spec": "other"}}))
        return main(["size", "--trace", trace, "--capacity", str(path)])

    assert sized_for() == 0
    assert "other promises" not in capsys.readouterr().out
    assert sized_for(threshold="0.1") == 0
    assert "warning: the capacity was certified for other promises, so fewer replicas may do" in capsys.readouterr().out
    assert sized_for(threshold="3") == 2
    assert "was certified for other promises: " in capsys.readouterr().err


def test_growth_and_spare_replicas_add_up(trace: str) -> None:
    sizes = []
    for flags in ((), ("--growth", "100"), ("--spare", "3")):
        assert main(["size", "--trace", trace, "--capacity", "0.5", "--json", "s.json", "--quiet", *flags]) == 0
        sizes.append(json.loads(Path("s.json").read_text())["replicas"])
    assert sizes[1] > sizes[0]
    assert sizes[2] == sizes[0] + 2


USAGE = {
    "no trace": ((), "--trace is missing: name a file of recorded requests"),
    "no capacity": (("--trace", "t.csv"), "--capacity is missing"),
    "no such trace": (("--trace", "none.csv", "--capacity", "1"), "--trace none.csv cannot be read"),
    "a headroom beyond all": (("--headroom", "99"), "--headroom 99: must be from 0 to 95"),
    "a seed that is none": (("--seed", "-1"), "--seed -1: must be from 0"),
    "less than nobody": (("--growth", "-100"), "--growth -100: must be from -99"),
    "no place for the page": (("--html", "/no/such/x"), "--html /no/such/x cannot be written"),
    "recorded by nobody": (("--trace", "recorded", "--capacity", "1"), "by whom? Name a collector's database"),
    "a database that is none": (("--database", "none.db"), "unable to open database file"),
}


@pytest.mark.parametrize(("argv", "says"), USAGE.values(), ids=USAGE.keys())
def test_bad_input_is_one_line_and_exit_2(
    argv: tuple[str, ...], says: str, trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert trace
    assert main(["size", *argv]) == 2
    err = capsys.readouterr().err
    assert says in err
    assert len(err.splitlines()) == 1


def test_a_name_is_said_as_it_stands(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(trace).rename("[bold]<b>.csv")
    assert main(["size", "--trace", "[bold]<b>.csv", "--capacity", "0.5", "--html", "s.html"]) == 0
    assert "by replay of [bold]<b>.csv" in capsys.readouterr().out
    assert "by replay of [bold]&lt;b&gt;.csv" in Path("s.html").read_text()
