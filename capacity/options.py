"""Flags that the environment may give: `FIRSTTOKEN_<FLAG>` stands in for a flag that is not written."""

import os
import tempfile
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from capacity.errors import WorkloadError
from capacity.sending import DEFAULT_MAX_IN_FLIGHT, DEFAULT_TIMEOUT_S
from slo.flags import variable
from slo.output import is_stream, put
from slo.signals import SYNTHETIC_CLASS


def add_flag(parser: ArgumentParser, environ: Mapping[str, str], flag: str, **options: Any) -> None:
    """A flag whose default its variable may give; a repeatable one takes one value from there, a switch any. An empty
    variable counts as not set."""
    set_by = environ.get(variable(flag))
    if set_by:
        is_switch = options.get("action") == "store_true"
        options["default"] = set_by not in ("0", "false") if is_switch else set_by
        if options.get("action") == "append":
            options["default"] = [set_by]
    parser.add_argument(flag, **options)


def printable(text: str) -> str:
    """A name that requests carry: of characters that can be seen, so that it can be sent and read back as it stands."""
    if not text or not text.isprintable():
        raise ArgumentTypeError(f"{text!a} is no name: write characters that can be seen")
    return text


def _header_value(text: str) -> str:
    if not printable(text).isascii():
        raise ArgumentTypeError(f"{text!r} cannot stand in a header: write letters, digits and signs of ASCII")
    return text


def add_sending_flags(parser: ArgumentParser, environ: Mapping[str, str]) -> None:
    """How requests are sent, whatever they are sent for."""
    add_flag(
        parser,
        environ,
        "--max-in-flight",
        type=int,
        default=DEFAULT_MAX_IN_FLIGHT,
        metavar="N",
        help="requests in flight at once (%(default)s)",
    )
    add_flag(
        parser,
        environ,
        "--timeout",
        type=float,
        default=DEFAULT_TIMEOUT_S,
        metavar="S",
        help="how long each request is waited for (%(default)s)",
    )
    add_flag(
        parser,
        environ,
        "--class",
        dest="request_class",
        type=_header_value,
        default=SYNTHETIC_CLASS,
        metavar="NAME",
        help="class of the requests; none: they are judged as users' are (%(default)s: no objective judges them)",
    )


def writable(flag: str, path: Path) -> Path:
    """The path that a flag names for a result, found writable before the run rather than after it. Raises
    WorkloadError."""
    if not path.parent.is_dir():
        raise WorkloadError(f"{flag} {path} cannot be written: there is no folder {path.parent}")
    if path.is_dir() or not (os.access(path, os.W_OK) if is_stream(path) else _takes_files(path.parent)):
        raise WorkloadError(f"{flag} {path} cannot be written: name a file in a folder that is yours")
    return path


def _takes_files(folder: Path) -> bool:
    """Whether a file can be made there, which its permissions alone do not tell: it may be read-only as a whole."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def write_json(path: Path, made: Mapping[str, object]) -> None:
    """A result as the JSON that `--json` names. Raises WorkloadError."""
    write("--json", path, orjson.dumps(made, option=orjson.OPT_INDENT_2).decode() + "\n")


def write(flag: str, path: Path, content: str | bytes) -> None:
    """A result at the path that a flag names, there whole or as it was before. Raises WorkloadError."""
    try:
        put(path, content)
    except OSError as error:
        raise WorkloadError(f"{flag} {path} cannot be written: {error.strerror}") from None
