"""A flag wins over its variable, which wins over the default."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

import pytest

from capacity.errors import WorkloadError
from capacity.options import add_flag, add_sending_flags, printable, writable, write


def parsed(argv: list[str], environ: dict[str, str]) -> Namespace:
    parser = ArgumentParser()
    add_flag(parser, environ, "--most-requests", type=int, default=3)
    add_flag(parser, environ, "--slo", action="append", default=[])
    add_flag(parser, environ, "--resume", action="store_true")
    return parser.parse_args(argv)


@pytest.mark.parametrize(
    ("argv", "environ", "expected"),
    [
        ([], {}, (3, [], False)),
        ([], {"FIRSTTOKEN_MOST_REQUESTS": "7", "FIRSTTOKEN_SLO": "a", "FIRSTTOKEN_RESUME": "1"}, (7, ["a"], True)),
        ([], {"FIRSTTOKEN_MOST_REQUESTS": "", "FIRSTTOKEN_SLO": "", "FIRSTTOKEN_RESUME": ""}, (3, [], False)),
        (["--most-requests", "9"], {"FIRSTTOKEN_MOST_REQUESTS": "7", "FIRSTTOKEN_RESUME": "0"}, (9, [], False)),
    ],
)
def test_where_a_value_comes_from(argv: list[str], environ: dict[str, str], expected: tuple[object, ...]) -> None:
    found = parsed(argv, environ)
    assert (found.most_requests, found.slo, found.resume) == expected


def test_a_result_has_a_place_before_it_is_made(tmp_path: Path) -> None:
    assert writable("--json", tmp_path / "x.json") == tmp_path / "x.json"
    assert writable("--json", Path("/dev/null")) == Path("/dev/null")
    assert not list(tmp_path.iterdir())
    unfit = ((tmp_path / "no" / "x", "there is no folder"), (tmp_path, "name a file"), (Path("/proc/x"), "name a file"))
    for path, says in unfit:
        with pytest.raises(WorkloadError, match=f"--html .* cannot be written: {says}"):
            writable("--html", path)


def test_a_result_that_finds_no_room_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "full").symlink_to("/dev/full")
    with pytest.raises(WorkloadError, match=r"--json .*full cannot be written: No space left on device"):
        write("--json", tmp_path / "full", "{}")


@pytest.mark.parametrize("text", ["", "a\r\nHost: b", "caf\u00e9"])
def test_a_class_is_what_can_stand_in_a_header(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser()
    add_sending_flags(parser, {})
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(["--class", text])
    assert "argument --class: " in capsys.readouterr().err
    assert parser.parse_args(["--class", "batch"]).request_class == "batch"


@pytest.mark.parametrize("text", ["", "a\nb", "\ud800"])
def test_a_name_that_cannot_be_seen_cannot_be_sent(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is no name: write characters that can be seen"):
        printable(text)
    assert printable("org/caf\u00e9 7B") == "org/caf\u00e9 7B"
