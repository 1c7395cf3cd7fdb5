"""Bad usage in one line, of a command and of its subcommands; variables; the version."""

from importlib.metadata import version

import pytest

from slo.flags import Parser, variable


def parser() -> Parser:
    made = Parser(prog="firsttoken x")
    made.add_version()
    made.add_subparsers(dest="command", required=True).add_parser("go").add_argument("--rate", type=float)
    return made


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "firsttoken x: the following arguments are required: command (see firsttoken x --help)\n"),
        (
            ["go", "--rate", "y"],
            "firsttoken x go: argument --rate: invalid float value: 'y' (see firsttoken x go --help)\n",
        ),
    ],
    ids=["the command", "a subcommand"],
)
def test_bad_usage_is_one_line_and_exit_2(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(argv)
    assert ended.value.code == 2
    assert capsys.readouterr().err == said


def test_the_version_is_the_releases(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parser().parse_args(["--version"])
    assert not ended.value.code
    assert capsys.readouterr().out == f"firsttoken {version('firsttoken')}\n"


@pytest.mark.parametrize(
    ("flag", "name"), [("--slo", "FIRSTTOKEN_SLO"), ("--eval-interval", "FIRSTTOKEN_EVAL_INTERVAL")]
)
def test_a_flag_has_its_variable(flag: str, name: str) -> None:
    assert variable(flag) == name
