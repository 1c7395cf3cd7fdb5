"""`firsttoken capacity size`: how many replicas a demand needs at its objectives.

Exit codes: 0 sized, 2 usage or bad input.
"""

import argparse
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from rich.console import Console

from capacity.certify.promises import promises
from capacity.errors import WorkloadError
from capacity.options import add_flag, printable, writable, write_json
from capacity.printed import moment_text, paper, print_left_out
from capacity.reports import add_report_flags, reports
from capacity.sizing.demand import Demand, demand_at, of_file
from capacity.sizing.measured import DEFAULT_RESULT, Measured, assumed, measured, refuse_for_less
from capacity.sizing.page import page_of
from capacity.sizing.replica import replica
from capacity.sizing.report import report
from capacity.sizing.result import Result
from capacity.sizing.sized import Terms, sized
from capacity.spec import add_spec_flags, named_spec
from capacity.stored.database import add_database_flags, named_database
from capacity.stored.recorded import NOTE, RECORDED, Whose, recorded_arrivals, recorded_lengths, since_s
from capacity.stored.results import Found, keep, last_certified, refuse_unfit
from slo.objective import Spec
from slo.promised import changed
from slo.signals import UNKNOWN_MODEL

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

MOST_SEED = 2**63 - 1


def add_to(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """The flags of `size`."""

    def add(flag: str, **options: object) -> None:
        add_flag(parser, environ, flag, **options)

    add(
        "--trace",
        metavar=f"FILE|{RECORDED}",
        help=f"the demand: a trace, CSV or JSON lines; or, from --database, what is {RECORDED} there",
    )
    add("--hours", type=float, metavar="N", help=f"how far back what is {RECORDED} is read (default: all of it)")
    add_spec_flags(parser, environ)
    add("--model", type=printable, metavar="NAME", help="whose objectives; else the one that was certified")
    add(
        "--capacity",
        metavar="RPS|FILE",
        help=f"what one replica takes: the result of certify (default {DEFAULT_RESULT}, else the last that --database "
        "holds), or requests/s",
    )
    add("--growth", type=float, default=0.0, metavar="PERCENT", help="more demand than was recorded (%(default)s)")
    add("--spare", type=int, default=1, metavar="N", help="replicas that may fail or be restarted (%(default)s)")
    add("--headroom", type=float, metavar="PERCENT", help="of capacity to hold back at the peak; else reckoned")
    add("--lead", type=float, default=300.0, metavar="S", help="time to notice and to start a replica (%(default)s)")
    add("--gpus", type=float, default=1.0, metavar="N", help="GPUs of one replica (%(default)s)")
    add("--seed", type=int, default=0, metavar="S", help="of what is drawn (%(default)s)")
    add("--json", metavar="FILE", help="write the result")
    add_report_flags(parser, environ)
    add_database_flags(parser, environ, "keep the result there, where dashboards and alerts find it")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def size(args: argparse.Namespace) -> int:
    """Run `firsttoken capacity size`; raises CapacityError for bad input."""
    terms, spec = _terms(args), named_spec(args)
    files = reports(args)
    if args.json is not None:
        writable("--json", Path(args.json))
    database = named_database(args, os.environ)
    if database is not None:
        refuse_unfit(database)
    whose = Whose(spec.environment, spec.service, args.model, since_s(args.hours, time.time()))
    demand = _demand(args, database, whose)
    known = measured(args.capacity, None if database is None else last_certified(database, whose))
    refuse_for_less(known, spec)
    result = _result(args, spec, demand, known, terms)
    settings = _settings(args, spec)
    made = result.as_json(settings)
    if args.json is not None:
        write_json(Path(args.json), made)
    files.write(page_of(result, settings))
    if not args.quiet:
        console = paper()
        console.print(report(result))
        print_left_out(console, result.left_out)
    if database is not None:
        model = result.measured.model or args.model or UNKNOWN_MODEL
        keep(database, Found(int(time.time()), "size", spec.environment, spec.service, model, "", made))
    return 0


def _demand(args: argparse.Namespace, database: "URL | None", whose: Whose) -> Demand:
    if args.trace is None:
        raise WorkloadError(f"--trace is missing: name a file of recorded requests, or {RECORDED} with --database")
    if args.trace != RECORDED:
        return of_file(args.trace)
    if database is None:
        raise WorkloadError(f"--trace {RECORDED}: by whom? Name a collector's database by --database")
    times_s, steps = recorded_arrivals(database, whose, args.seed)
    pairs = recorded_lengths(database, whose, args.seed)
    chance = Random(args.seed)  # noqa: S311  chance for a load, no secret
    tokens = tuple(chance.choices(pairs, k=times_s.size)) if pairs else ()
    note = f"bursts within steps of up to {steps.longest_s} s are not recorded: requests are spread evenly over each"
    return demand_at(f"what is {RECORDED} of {whose.text}", times_s, f"{note}; {NOTE}" if pairs else note, tokens)


def _result(args: argparse.Namespace, spec: Spec, demand: Demand, known: Measured, terms: Terms) -> Result:
    promised = promises(spec, args.model or known.model or UNKNOWN_MODEL, None)
    judged = tuple(one for one in promised.judged if one.signal != "availability")
    console = Console(stderr=True, quiet=args.quiet)
    with console.status("one replica") as status:
        known = assumed(known, judged)
        one = replica(known, judged, demand, terms.seed)
        found = sized(demand, known, one, terms, lambda doing: status.update(f"replay: {doing}"))
    return Result(found, demand, known, one, terms, promised.left_out, tuple(_doubts(known, spec, args.model)))


def _doubts(known: Measured, spec: Spec, model: str | None) -> Iterator[str]:
    """What speaks against the capacity, but not so that nothing could be said."""
    since = changed(known.promised, spec)
    if since.less:
        yield f"the capacity was certified for other promises, so fewer replicas may do: {since.text}"
    if known.model is not None and model not in (None, known.model):
        yield f"the capacity is that of model {known.model}, not of {model}"


def _terms(args: argparse.Namespace) -> Terms:
    for flag, value, least, most in (
        ("--growth", args.growth, -99, 10_000),
        ("--spare", args.spare, 0, 1000),
        ("--headroom", args.headroom or 0, 0, 95),
        ("--lead", args.lead, 1, 86_400),
        ("--gpus", args.gpus, 0.01, 10_000),
        ("--seed", args.seed, 0, MOST_SEED),
    ):
        if not least <= value <= most:
            raise WorkloadError(f"{flag} {value:g}: must be from {least:g} to {most:g}")
    headroom = None if args.headroom is None else args.headroom / 100
    return Terms(1 + args.growth / 100, args.spare, args.lead, headroom, args.gpus, args.seed)


def _settings(args: argparse.Namespace, spec: Spec) -> dict[str, object]:
    return {
        "made": moment_text(time.time()),
        "service": spec.service,
        "spec": spec.hash,
        "trace": args.trace,
        "capacity": args.capacity,
    }
