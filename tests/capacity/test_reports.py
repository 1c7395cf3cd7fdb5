"""The files that a report goes to."""

import argparse
from pathlib import Path

import pytest

from capacity.errors import WorkloadError
from capacity.reports import add_report_flags, reports
from tests.capacity.report.test_html import PAGE, assert_is_whole


def named(*argv: str, **environ: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--json")
    add_report_flags(parser, environ)
    return parser.parse_args(argv)


def test_a_page_and_a_picture_go_where_the_flags_say(tmp_path: Path) -> None:
    files = reports(named("--html", f"{tmp_path}/a.html", FIRSTTOKEN_PNG=f"{tmp_path}/a.png"))
    files.write(PAGE)
    assert_is_whole((tmp_path / "a.html").read_text())
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_none_is_written_unless_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    reports(named()).write(PAGE)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", ["--html", "--png"])
def test_one_that_cannot_be_written_is_refused_before_the_run(flag: str) -> None:
    with pytest.raises(WorkloadError, match=f"{flag} /no/such/folder/x cannot be written"):
        reports(named(flag, "/no/such/folder/x"))


def test_no_two_results_go_to_one_file(tmp_path: Path) -> None:
    one, beside = f"{tmp_path}/a", f"{tmp_path}/x/../a"
    (tmp_path / "x").mkdir()
    with pytest.raises(WorkloadError, match=r"^--html \S+/a is the file of --json too: name two$"):
        reports(named("--json", one, "--html", one))
    with pytest.raises(WorkloadError, match=r"^--png \S+ is the file of --html too: name two$"):
        reports(named("--html", one, "--png", beside))
    assert reports(named("--json", "/dev/null", "--html", "/dev/null")).html == Path("/dev/null")


@pytest.mark.parametrize("read", ["trace", "workload", "capacity"])
def test_no_result_takes_the_place_of_what_it_comes_from(tmp_path: Path, read: str) -> None:
    args = named("--json", f"{tmp_path}/a")
    setattr(args, read, f"{tmp_path}/a")
    with pytest.raises(WorkloadError, match=rf"^--json \S+/a is the file of --{read} too: name two$"):
        reports(args)
