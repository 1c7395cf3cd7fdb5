"""Flags that the environment may give: `FIRSTTOKEN_<FLAG>` stands in for a flag that is not written."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from capacity.sending import DEFAULT_MAX_IN_FLIGHT, DEFAULT_TIMEOUT_S
from slo.flags import variable
from slo.signals import SYNTHETIC_CLASS


def add_flag(parser: ArgumentParser, environ: Mapping[str, str], flag: str, **options: Any) -> None:
    """A flag whose default its variable may give; a repeatable one takes one value from there, a switch any."""
    set_by = environ.get(variable(flag))
    if set_by is not None:
        is_switch = options.get("action") == "store_true"
        options["default"] = set_by not in ("", "0", "false") if is_switch else set_by
        if options.get("action") == "append":
            options["default"] = [set_by]
    parser.add_argument(flag, **options)


def add_sending_flags(parser: ArgumentParser, environ: Mapping[str, str]) -> None:
    """How requests are sent, whatever they are sent for."""
    add_flag(
        parser,
        environ,
        "--max-in-flight",
        type=int,
        default=DEFAULT_MAX_IN_FLIGHT,
        metavar="N",
        help="at once (%(default)s)",
    )
    add_flag(
        parser,
        environ,
        "--timeout",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        metavar="S",
        help="patience a request (%(default)s)",
    )
    add_flag(
        parser,
        environ,
        "--class",
        dest="request_class",
        default=SYNTHETIC_CLASS,
        metavar="NAME",
        help="class of the requests; none: they are judged as users' are (%(default)s: no objective judges them)",
    )
