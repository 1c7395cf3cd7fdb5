"""`firsttoken capacity`: load on a server, and what it took.

`load` sends open-loop streaming chat requests and reports latency from the moment each was due; `certify` finds the
highest rate that keeps the objectives, `size` how many replicas a recorded demand needs, and `batch` the largest batch
size. Exit codes: 0 fine, 1 not one request was answered well, no rate is certified or no batch feasible, 2 usage, bad
input or a target that cannot be asked.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

import orjson
from rich.console import Console

from capacity import screen
from capacity.batch.cli import add_to as add_batch_flags
from capacity.batch.cli import batch
from capacity.certify.cli import add_to as add_certify_flags
from capacity.certify.cli import certify
from capacity.client import Target, target
from capacity.discovery import first_model
from capacity.errors import CapacityError, TargetError, WorkloadError
from capacity.load import Plan, run
from capacity.options import add_flag, add_sending_flags, printable, writable, write
from capacity.record import Load
from capacity.schedule import MAX_TOKENS, Span, Workload, arrivals, fixed, poisson
from capacity.sending import Limits
from capacity.sizing.cli import add_to as add_size_flags
from capacity.sizing.cli import size
from capacity.summary import Summary, summarise
from slo.flags import Parser
from slo.words import visible


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken capacity ...`; returns the exit code."""
    args = _parser(os.environ).parse_args(argv)
    try:
        return {"load": _load, "certify": certify, "size": size, "batch": batch}[args.command](args)
    except CapacityError as error:
        print(f"firsttoken capacity: {visible(str(error))}", file=sys.stderr)
        return 2


def _load(args: argparse.Namespace) -> int:
    report_to = None if args.json is None else writable("--json", Path(args.json))
    plan = _plan(args)
    load = asyncio.run(_run(plan, is_quiet=args.quiet))
    summary = summarise(load)
    if not args.quiet:
        Console(highlight=False, soft_wrap=True, markup=False).print(screen.report(summary))
    if report_to is not None:
        write("--json", report_to, _json(load, summary))
    if not summary.outcomes.get("ok") and load.records:
        print(f"firsttoken capacity: no request was answered well: {visible(_first_error(load))}", file=sys.stderr)
        return 1
    return 0


def _plan(args: argparse.Namespace) -> Plan:
    """What the flags ask for; the target is asked for its models only when everything else is as it should be."""
    if args.target is None:
        raise TargetError("--target is missing: write --target http://HOST:PORT")
    to = target(args.target)
    chance = Random(args.seed)  # noqa: S311  chance for a load, no secret
    is_fixed = args.schedule == "fixed"
    times = fixed(args.rate, args.seconds) if is_fixed else poisson(args.rate, args.seconds, chance)
    limits = Limits(args.max_in_flight, args.timeout)
    spans = _span("--input", args.input), _span("--output", args.output)
    workload = Workload(_models(args.model, to), *spans)
    return Plan(
        to,
        arrivals(times, workload, chance),
        args.seconds,
        limits,
        None if args.request_class == "none" else args.request_class,
        args.seed,
    )


async def _run(plan: Plan, *, is_quiet: bool) -> Load:
    """The load; SIGINT and SIGTERM end it early with what it has."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    console = Console(stderr=True, quiet=is_quiet)
    with screen.progress(console, plan.seconds) as show:
        return await run(plan, stop=stop, on_progress=show)


def _models(named: list[str], to: Target) -> tuple[tuple[str, float], ...]:
    """Models and weights as `NAME` or `NAME=WEIGHT`; without any, the first that the target lists."""
    return tuple(_model(text) for text in named) or ((first_model(to), 1.0),)


def _model(text: str) -> tuple[str, float]:
    name, equals, weight = text.rpartition("=")
    if not equals:
        return text, 1.0
    try:
        return name, float(weight)
    except ValueError:
        raise WorkloadError(f"--model {text}: {weight!r} is no weight: write NAME or NAME=WEIGHT") from None


def _span(flag: str, text: str) -> Span:
    low, _, high = text.partition("-")
    try:
        return Span(int(low), int(high or low))
    except (ValueError, WorkloadError):
        raise WorkloadError(f"{flag} {text} is no length: write N or LOW-HIGH, from 1 to {MAX_TOKENS}") from None


def _json(load: Load, summary: Summary) -> str:
    return orjson.dumps({"summary": summary.as_json(), **load.as_json()}, option=orjson.OPT_INDENT_2).decode() + "\n"


def _first_error(load: Load) -> str:
    return next((record.error for record in load.records if record.error), load.records[0].outcome)


def _parser(environ: Mapping[str, str]) -> Parser:
    parser = Parser(prog="firsttoken capacity", description="How much load a server takes.")
    parser.add_version()
    commands = parser.add_subparsers(dest="command", required=True, metavar="load|certify|size|batch")
    about = "send open-loop load and report latency from when each request was due"
    load = commands.add_parser("load", help=about, description=about.capitalize() + ".")
    about = "find the highest rate at which a server is shown to keep its objectives"
    add_certify_flags(commands.add_parser("certify", help=about, description=about.capitalize() + "."), environ)
    about = "say how many replicas a recorded demand needs to keep the objectives"
    add_size_flags(commands.add_parser("size", help=about, description=about.capitalize() + "."), environ)
    about = "find the largest batch size whose steps and waits keep the objectives"
    add_batch_flags(commands.add_parser("batch", help=about, description=about.capitalize() + "."), environ)

    def add(flag: str, **options: object) -> None:
        add_flag(load, environ, flag, **options)

    add("--target", metavar="URL", help="OpenAI-compatible server, as http://127.0.0.1:8001")
    add("--rate", type=float, default=1.0, metavar="R", help="requests a second (%(default)s)")
    add("--seconds", type=float, default=60.0, metavar="N", help="length of the schedule (%(default)s)")
    add("--schedule", choices=("poisson", "fixed"), default="poisson", help="gaps between requests (%(default)s)")
    add(
        "--model",
        type=printable,
        action="append",
        default=[],
        metavar="NAME[=WEIGHT]",
        help="repeatable; else the target's first",
    )
    add("--input", default="32", metavar="N|LOW-HIGH", help="words of prompt, about a token each (%(default)s)")
    add("--output", default="64", metavar="N|LOW-HIGH", help="tokens asked for (%(default)s)")
    add("--seed", type=int, default=0, metavar="S", help="same seed, same load (%(default)s)")
    add_sending_flags(load, environ)
    add("--json", metavar="FILE", help="write summary and every record")
    load.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser
