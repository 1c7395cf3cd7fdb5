"""A flag wins over its variable, which wins over the default."""

from argparse import ArgumentParser, Namespace

import pytest

from capacity.options import add_flag


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
        (["--most-requests", "9"], {"FIRSTTOKEN_MOST_REQUESTS": "7", "FIRSTTOKEN_RESUME": "0"}, (9, [], False)),
    ],
)
def test_where_a_value_comes_from(argv: list[str], environ: dict[str, str], expected: tuple[object, ...]) -> None:
    found = parsed(argv, environ)
    assert (found.most_requests, found.slo, found.resume) == expected
