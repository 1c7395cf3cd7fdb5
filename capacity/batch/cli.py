"""`firsttoken capacity batch`: the largest batch size whose steps and waits keep the objectives.

Exit codes: 0 a batch is chosen, 1 none is feasible, 2 usage, bad input or a server that cannot be asked or put back,
130 interrupted. The server's batch size is put back however it ends, where it is known what it was.
"""

import argparse
import asyncio
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.console import Console

from capacity.batch import recorded
from capacity.batch.asked import DEFAULT_JSON, Setup, add_to, setup_of
from capacity.batch.page import page_of, page_of_records
from capacity.batch.report import progress, report
from capacity.batch.result import Result
from capacity.batch.search import Outcome
from capacity.batch.sitting import Account, Ended, sit, turned_back
from capacity.errors import UnreachableError, WorkloadError
from capacity.options import writable, write_json
from capacity.printed import moment_text, paper, print_left_out
from capacity.reports import Reports, reports
from capacity.spec import named_spec
from capacity.stored.database import asked, named_database
from capacity.stored.recorded import since_s
from capacity.stored.results import Found, keep, refuse_unfit
from slo.objective import Spec

__all__ = ["add_to", "batch"]

INTERRUPTED = 130


def batch(args: argparse.Namespace) -> int:
    """Run `firsttoken capacity batch`; raises CapacityError for bad input."""
    path = writable("--json", Path(args.json or DEFAULT_JSON))
    files = reports(args)
    is_test = any(flag is not None for flag in (args.target, args.batch_url, args.restart))
    return _tested(args, path, files) if is_test else _from_records(args, path, files)


def _tested(args: argparse.Namespace, path: Path, files: Reports) -> int:
    database = named_database(args, os.environ)
    if database is not None:
        refuse_unfit(database)
    setup = setup_of(args)
    account = Account()
    ended = asyncio.run(_sitting(setup, account, path, Console(stderr=True, quiet=args.quiet, markup=False)))
    outcome = ended.outcome
    result = _result(setup, account, outcome)
    settings = _settings(setup)
    made = result.as_json(settings)
    write_json(path, made)
    files.write(page_of(result, settings))
    if database is not None and outcome is not None:
        to = str(setup.settings["target"])
        keep(database, _found(setup.spec, str(setup.settings["model"]), to, made))
    if not args.quiet:
        console = paper()
        console.print(report(result))
        if ended.not_back is None:
            console.print(_left_at(setup))
        if setup.lengths.note:
            console.print(f"workload: {setup.lengths.note}")
        print_left_out(console, setup.left_out)
    if ended.not_back is not None:
        raise UnreachableError(f"the result is in {path}, but the server's batch is not put back: {ended.not_back}")
    return INTERRUPTED if outcome is None else int(outcome.chosen is None)


async def _sitting(setup: Setup, account: Account, path: Path, console: Console) -> Ended:
    """Search; without an outcome when SIGINT or SIGTERM came first."""

    def keep_now(outcome: Outcome | None) -> None:
        write_json(path, _result(setup, account, outcome).as_json(_settings(setup)))

    with progress(console, setup.plan) as show:
        going = asyncio.create_task(sit(setup.server, setup.plan, account, on_ask=show, on_kept=lambda: keep_now(None)))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, going.cancel)
        return await turned_back(setup.server, going, keep_now)


def _result(setup: Setup, account: Account, outcome: Outcome | None) -> Result:
    return Result(outcome, account, setup.plan, setup.lengths, setup.memory, setup.server.batch_before)


def _settings(setup: Setup) -> dict[str, object]:
    return {"made": moment_text(time.time()), **setup.settings, "batch_before": setup.server.batch_before}


def _left_at(setup: Setup) -> str:
    before = setup.server.batch_before
    if before is None:
        return "the server is left at the chosen batch, or the one tried last: what it had is not known (--batch-now)"
    return f"the server's batch is {before} again"


def _from_records(args: argparse.Namespace, path: Path, files: Reports) -> int:
    database = named_database(args, os.environ)
    if database is None:
        raise WorkloadError("--target is missing: write --target http://HOST:PORT, or --database to read records")
    spec = named_spec(args)
    whose = recorded.Asked(spec.environment, spec.service, args.model or "", since_s(args.hours, time.time()))
    model = asked(database, lambda connection: recorded.model_of(connection, whose))
    judged, left_out = recorded.told(spec, model)
    whose = replace(whose, model=model)
    outcome = recorded.least_of(
        [
            recorded.judge(
                one.name,
                asked(database, partial(recorded.read, asked=whose, share=float(one.goal))),
                float(one.threshold or 0),
            )
            for one in judged
        ]
    )
    settings = {
        "made": moment_text(time.time()),
        "service": spec.service,
        "model": model,
        "objective": outcome.binding,
        "left_out": list(left_out),
        "hours": args.hours,
        "spec": spec.hash,
    }
    made = outcome.as_json(settings)
    write_json(path, made)
    files.write(page_of_records(outcome, settings))
    if outcome.chosen is not None:  # what records could not say must not stand in the place of what a test has shown
        keep(database, _found(spec, model, "", made))
    if not args.quiet:
        console = paper()
        console.print(outcome.sentence())
        print_left_out(console, left_out)
    return int(outcome.chosen is None)


def _found(spec: Spec, model: str, to: str, made: Mapping[str, object]) -> Found:
    return Found(int(time.time()), "batch", spec.environment, spec.service, model, to, made)
