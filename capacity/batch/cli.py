"""`firsttoken capacity batch`: the largest batch size whose steps and waits keep the objectives.

Exit codes: 0 a batch is chosen, 1 none is feasible, 2 usage, bad input or a server that cannot be asked, 130
interrupted. The server's batch size is put back in every case.
"""

import argparse
import asyncio
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import orjson
from rich.console import Console

from capacity.batch import recorded
from capacity.batch.asked import DEFAULT_JSON, Setup, add_to, setup_of
from capacity.batch.html import page_of, page_of_records
from capacity.batch.report import progress, report
from capacity.batch.result import Result
from capacity.batch.search import Outcome
from capacity.batch.sitting import Account, sit, turned_back
from capacity.errors import WorkloadError
from capacity.options import writable
from capacity.spec import named_spec
from capacity.stored.database import asked, named_database
from capacity.stored.results import Found, keep, refuse_unfit
from slo.objective import Objective, Spec
from slo.output import put

__all__ = ["add_to", "batch"]

INTERRUPTED = 130
PIPE_WIDTH = 160
HOUR_S = 3600


def batch(args: argparse.Namespace) -> int:
    """Run `firsttoken capacity batch`; raises CapacityError for bad input."""
    path = writable("--json", Path(args.json or DEFAULT_JSON))
    if args.html is not None:
        writable("--html", Path(args.html))
    return _from_records(args, path) if args.target is None and args.batch_url is None else _tested(args, path)


def _tested(args: argparse.Namespace, path: Path) -> int:
    database = named_database(args, os.environ)
    if database is not None:
        refuse_unfit(database)
    setup = setup_of(args)
    account = Account()
    outcome = asyncio.run(_sitting(setup, account, path, Console(stderr=True, quiet=args.quiet)))
    result = _result(setup, account, outcome)
    settings = setup.settings | {"batch_before": setup.server.batch_before}
    made = result.as_json(settings)
    _write(path, made)
    if args.html is not None:
        put(Path(args.html), page_of(result, settings))
    if database is not None and outcome is not None:
        to = str(setup.settings["target"])
        keep(database, _found(setup.spec, str(setup.settings["model"]), to, made))
    if not args.quiet:
        console = _console()
        console.print(report(result))
        console.print(_left_at(setup))
        for why_not in setup.left_out:
            console.print(f"left out: {why_not}")
    return INTERRUPTED if outcome is None else int(outcome.chosen is None)


async def _sitting(setup: Setup, account: Account, path: Path, console: Console) -> Outcome | None:
    """Search; None when SIGINT or SIGTERM came first."""

    def on_kept() -> None:
        _write(path, _result(setup, account, None).as_json(setup.settings))

    with progress(console) as show:
        going = asyncio.create_task(sit(setup.server, setup.plan, account, on_ask=show, on_kept=on_kept))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, going.cancel)
        return await turned_back(setup.server, going)


def _result(setup: Setup, account: Account, outcome: Outcome | None) -> Result:
    return Result(outcome, account, setup.plan, setup.lengths, setup.memory)


def _left_at(setup: Setup) -> str:
    before = setup.server.batch_before
    if before is None:
        return "the server is left at the chosen batch, or the one tried last: what it had is not known (--batch-now)"
    return f"the server's batch is {before} again"


def _from_records(args: argparse.Namespace, path: Path) -> int:
    database = named_database(args, os.environ)
    if database is None:
        raise WorkloadError("--target is missing: write --target http://HOST:PORT, or --database to read records")
    spec = named_spec(args)
    whose = recorded.Asked(spec.environment, spec.service, args.model or "", int(time.time() - args.hours * HOUR_S))
    model, one = asked(database, lambda connection: _promise(spec, recorded.model_of(connection, whose)))
    whose = recorded.Asked(spec.environment, spec.service, model, whose.since_s)
    share, threshold_s = 1 - float(one.allowed_bad), float(one.threshold or 0)
    outcome = recorded.judge(asked(database, lambda connection: recorded.read(connection, whose, share)), threshold_s)
    settings = {"service": spec.service, "model": model, "objective": one.name, "hours": args.hours, "spec": spec.hash}
    made = outcome.as_json(settings)
    _write(path, made)
    if args.html is not None:
        put(Path(args.html), page_of_records(outcome, settings))
    if outcome.chosen is not None:  # what records could not say must not stand in the place of what a test has shown
        keep(database, _found(spec, model, "", made))
    if not args.quiet:
        _console().print(outcome.sentence())
    return int(outcome.chosen is None)


def _promise(spec: Spec, model: str) -> tuple[str, Objective]:
    """The model, and the strictest of the spec's promises of its time per output token."""
    of_steps = [one for one in spec.objectives if one.signal == "tpot" and one.match.holds_model(model)]
    if not of_steps:
        raise WorkloadError(f"service {spec.service} promises no tpot of model {model}: records say nothing of others")
    return model, min(of_steps, key=lambda one: one.threshold or 0)


def _found(spec: Spec, model: str, to: str, made: Mapping[str, object]) -> Found:
    return Found(int(time.time()), "batch", spec.environment, spec.service, model, to, made)


def _write(path: Path, made: Mapping[str, object]) -> None:
    put(path, orjson.dumps(made, option=orjson.OPT_INDENT_2).decode() + "\n")


def _console() -> Console:
    console = Console(highlight=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH  # a pipe has no width of its own
    return console
