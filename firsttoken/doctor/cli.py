"""`firsttoken doctor`: what is missing or wrong in a running stack, each with its fix.

Exit codes: 0 nothing is wrong, 1 something is, 2 usage or a spec that cannot be used.
"""

import argparse
import json
import os
import signal
import ssl
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

from firsttoken.doctor.address import Address, address
from firsttoken.doctor.checks.table import findings
from firsttoken.doctor.facts import Facts, Kind
from firsttoken.doctor.look import Asked, look
from firsttoken.doctor.page import services
from firsttoken.doctor.report import mapping, shown
from firsttoken.errors import FirstTokenError, UsageError
from firsttoken.http_json import Access
from firsttoken.token_file import token_of
from slo.flags import Parser, variable
from slo.objective import load
from slo.quantity import QuantityError, duration_s
from slo.signals import SERVICE_LABEL
from slo.source import SpecError
from slo.words import reason

DEFAULT_SLO = "slo.yaml"
DEFAULT_WAIT = "12s"
"""Longer than an export interval: who sends nothing in it drops nothing in it either."""
PIPE_COLUMNS = 100
PLACES: Mapping[Kind, tuple[str, str]] = {
    "server": ("an inference server, or what users reach it through", "/v1"),
    "sidecar": ("the admin address of a sidecar", "/metrics"),
    "collector": ("a collector", "/metrics"),
    "prometheus": ("a Prometheus; sidecars, collectors and Alertmanagers that it names are looked at too", ""),
    "alertmanager": ("an Alertmanager", ""),
}


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken doctor ...`; returns the exit code."""
    args = _parser(os.environ).parse_args(argv)
    try:
        with _ended_by_ctrl_c():
            facts = _facts(args, sys.argv[1:] if argv is None else argv)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    except FirstTokenError as error:
        print(f"firsttoken doctor: {error}", file=sys.stderr)
        return 2
    found = findings(facts)
    if args.json:
        print(json.dumps(mapping(facts, found), indent=2))
    else:
        console = Console(highlight=False, soft_wrap=True)
        columns = console.width if console.is_terminal or "COLUMNS" in os.environ else PIPE_COLUMNS
        console.print(shown(facts, found, notes=args.notes, columns=columns))
    return 1 if any(one.is_wrong for one in found) else 0


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """Ctrl-C ends the process at once, not when the last thread has had its answer: it only reads."""
    is_ours = threading.current_thread() is threading.main_thread()
    if not is_ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _facts(args: argparse.Namespace, typed: Sequence[str]) -> Facts:
    places = {kind: _places(kind, _given(args, kind), typed, leaf) for kind, (_, leaf) in PLACES.items()}
    if not any(places.values()):
        flags = ", ".join(f"--{kind}" for kind in PLACES)
        raise UsageError(f"nothing to look at: name it by {flags} (a --prometheus leads to the others)")
    if args.probe and not places["server"]:
        raise UsageError("--probe sends a request to a server: name it by --server URL")
    files = _given(args, "slo")
    foreign = Access(ca_file=_authority(args.tls_ca))
    asked = Asked(
        places,
        load(files) if files else (),
        own=replace(foreign, token=token_of("--token-file", args.token_file)),
        foreign=foreign,
        server=replace(foreign, token=token_of("--server-token-file", args.server_token_file)),
        probes=args.probe,
        wait_s=_wait_s(args.wait),
    )
    facts = look(asked, ours=version("firsttoken"), now_s=time.time())
    return facts if files else _with_default_spec(facts)


def _given(args: argparse.Namespace, name: str) -> list[str]:
    """What a flag that may be repeated was given, else its variable, parted by blanks."""
    typed: list[str] | None = getattr(args, name)
    return os.environ.get(variable(name), "").split() if typed is None else typed


def _places(kind: Kind, given: Sequence[str], typed: Sequence[str], leaf: str) -> tuple[Address, ...]:
    def is_typed(text: str) -> bool:
        return any(text in word for word in typed)

    return tuple(address(f"--{kind}", text, is_typed=is_typed(text), leaf=leaf) for text in given)


def _with_default_spec(facts: Facts) -> Facts:
    """With ./slo.yaml where that speaks of a service that was seen: in another folder it may be of another stack."""
    if not Path(DEFAULT_SLO).exists():
        return facts
    heard = {service for _, _, page in facts.pages for _, service in services(page)}
    heard |= {labels.get(SERVICE_LABEL, "") for one in facts.prometheuses for labels in one.events}
    return replace(facts, specs=tuple(spec for spec in load([DEFAULT_SLO]) if spec.service in heard))


def _wait_s(text: str) -> float:
    if text == "0":
        return 0.0
    try:
        return float(duration_s(text))
    except QuantityError as error:
        raise UsageError(f"--wait {error}; 0: no second look") from None


def _authority(file: str | None) -> str:
    """The name of the file with certificates; '' where none is given. Raises UsageError for one that holds none."""
    try:
        ssl.create_default_context(cafile=file or None)
    except OSError as error:
        raise UsageError(f"--tls-ca {file} holds no certificates: {reason(error)}") from None
    return file or ""


def _parser(environ: Mapping[str, str]) -> Parser:
    parser = Parser(
        prog="firsttoken doctor",
        description="Look at a running stack and say what is missing or wrong, each with its fix. It only reads; with "
        "--probe it sends short requests. Exit 0: nothing is wrong, 1: something is.",
    )

    def several(name: str, metavar: str, about: str) -> None:
        parser.add_argument(f"--{name}", action="append", metavar=metavar, help=f"{about}; may be repeated")

    for kind, (about, _) in PLACES.items():
        several(kind, "URL", about)
    several("slo", "FILE", "the spec, or a folder of such (default ./slo.yaml, where it is of a service that is seen)")
    texts = {
        "token-file": ("FILE", "the token that sidecars and collectors ask for", None),
        "server-token-file": ("FILE", "the API key that the server asks for", None),
        "tls-ca": ("FILE", "who signed the certificates, where this machine does not know it", None),
        "wait": ("DURATION", "how long a counter that shows trouble is watched; 0: not (%(default)s)", DEFAULT_WAIT),
    }
    for name, (metavar, about, default) in texts.items():
        given = environ.get(variable(name)) or default
        parser.add_argument(f"--{name}", default=given, metavar=metavar, help=about)
    parser.add_argument(
        "--probe", action="store_true", help="send a streamed request or three to each --server, class synthetic"
    )
    parser.add_argument("--notes", action="store_true", help="show also what is good to know and not wrong")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_version()
    return parser
