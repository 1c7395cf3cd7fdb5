"""`firsttoken capacity certify`: the highest rate at which a server is shown to keep its objectives.

Exit codes: 0 a rate is certified, 1 none is, 2 usage, bad input or a target that cannot be asked, 130 interrupted.
"""

import argparse
import asyncio
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import orjson
from rich.console import Console

from capacity.certify.account import Account, account
from capacity.certify.endpoint import Endpoint, Setting
from capacity.certify.judge import Rigour
from capacity.certify.lengths import lengths
from capacity.certify.promises import promises
from capacity.certify.report import progress, report
from capacity.certify.result import Result
from capacity.certify.search import Outcome
from capacity.certify.sitting import sit
from capacity.certify.workload import Tokens, Workload
from capacity.client import target
from capacity.discovery import first_model
from capacity.errors import TargetError, WorkloadError
from capacity.options import add_flag, add_sending_flags
from capacity.sending import Limits
from slo.objective import Spec, load
from slo.output import put
from slo.source import SpecError

DEFAULT_JSON = "capacity-certify.json"
DEFAULT_SLO = "slo.yaml"
DEFAULT_MINUTES = 15.0
RUN_PART = 0.12
"""The part of the time that one run may take; a certificate takes two, and a search a few of them."""
INTERRUPTED = 130
PIPE_WIDTH = 200


def add_to(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """The flags of `certify`."""

    def add(flag: str, **options: object) -> None:
        add_flag(parser, environ, flag, **options)

    add("--target", metavar="URL", help="OpenAI-compatible server, as http://127.0.0.1:8001")
    add("--slo", action="append", default=[], metavar="FILE", help=f"repeatable (default ./{DEFAULT_SLO})")
    add("--service", metavar="NAME", help="whose objectives, where the spec holds several services")
    add("--workload", metavar="IN:OUT|FILE", help="tokens as 512:128 or 100-900:20-200, or a recorded trace")
    add("--shared-words", type=int, default=0, metavar="N", help="words all prompts begin with (%(default)s: unique)")
    add("--model", metavar="NAME", help="else the target's first")
    add("--peak", type=float, metavar="R", help="requests/s expected, to say what headroom is left")
    add("--minutes", type=float, default=DEFAULT_MINUTES, metavar="N", help="about how long it may take (%(default)s)")
    add("--most-requests", type=int, default=20_000, metavar="N", help="requests of one run (%(default)s)")
    add("--least-seconds", type=float, default=30.0, metavar="S", help="of one run: rarer is not seen (%(default)s)")
    add("--tolerance", type=float, default=4.0, metavar="PERCENT", help="how close to come (%(default)s)")
    add("--seed", type=int, default=0, metavar="S", help="same seed, same requests (%(default)s)")
    add_sending_flags(parser, environ)
    add("--json", metavar="FILE", help=f"the result, kept after every run (default {DEFAULT_JSON})")
    add("--resume", action="store_true", help="go on with an interrupted result of the same settings")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def certify(args: argparse.Namespace) -> int:
    """Run `firsttoken capacity certify`; raises CapacityError for bad input."""
    path = _path(args)
    if args.target is None:
        raise TargetError("--target is missing: write --target http://HOST:PORT")
    if args.workload is None:
        raise WorkloadError("--workload is missing: write IN:OUT tokens as 512:128, or name a recorded trace")
    to, drawn = target(args.target), lengths(args.workload)
    rigour = _rigour(args)
    spec = _spec(args)
    model = args.model or first_model(to)
    request_class = None if args.request_class == "none" else args.request_class
    promised = promises(spec, model, request_class)
    setting = Setting(
        to,
        Workload(model, drawn, args.shared_words),
        promised,
        Limits(args.max_in_flight, args.timeout),
        request_class,
        args.seed,
    )
    settings = _settings(args, setting, spec)
    heard, tokens = _resumed(path, settings) if args.resume else (Account(), None)
    peak_rps = args.peak if args.peak is not None else drawn.peak_rps
    run = _Certification(setting, rigour, heard, path, settings, peak_rps)
    outcome = asyncio.run(run.run(tokens, Console(stderr=True, quiet=args.quiet)))
    result = run.result(outcome)
    if not args.quiet:
        console = Console(highlight=False, soft_wrap=True)
        if not console.is_terminal and "COLUMNS" not in os.environ:
            console.width = PIPE_WIDTH  # a pipe has no width of its own
        console.print(report(result))
        for why_not in promised.left_out:
            print(f"left out: {why_not}")
    return INTERRUPTED if outcome is None else int(outcome.certified is None)


@dataclass(slots=True)
class _Certification:
    """One sitting, and where its result is kept."""

    _setting: Setting
    _rigour: Rigour
    _heard: Account
    _path: Path
    _settings: dict[str, object]
    _peak_rps: float | None

    def result(self, outcome: Outcome | None) -> Result:
        return Result(outcome, self._heard, self._setting.promises.goals, self._rigour, self._peak_rps)

    async def run(self, tokens: Tokens | None, console: Console) -> Outcome | None:
        """Search; None when SIGINT or SIGTERM came first."""
        spent_s = sum(kept.looks[-1][1] for kept in self._heard.runs.values())
        outcome = None
        with progress(console, spent_s, self._rigour.most_seconds) as show:
            endpoint = Endpoint(self._setting, show)
            search = asyncio.create_task(self._search(endpoint, tokens))
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, search.cancel)
            try:
                outcome = await search
            except asyncio.CancelledError:
                outcome = None
        self._keep(outcome)
        return outcome

    async def _search(self, endpoint: Endpoint, tokens: Tokens | None) -> Outcome:
        if tokens is None:
            tokens = (await endpoint.measure_words()).tokens
        else:
            endpoint.use(replace(self._setting.workload, tokens=tokens))
        self._settings["tokens"] = {"fixed": tokens.fixed, "each": tokens.each}
        goals = self._setting.promises.goals
        return await sit(endpoint, self._heard, goals, self._rigour, on_kept=lambda: self._keep(None))

    def _keep(self, outcome: Outcome | None) -> None:
        made = self.result(outcome).as_json(self._settings)
        put(self._path, orjson.dumps(made, option=orjson.OPT_INDENT_2).decode() + "\n")


def _path(args: argparse.Namespace) -> Path:
    """Where the result goes, found writable before the load rather than after it."""
    path = Path(args.json or DEFAULT_JSON)
    if args.json is None and path.exists() and not args.resume:
        raise WorkloadError(f"{path} is already there: go on with it by --resume, or name another by --json")
    if not path.parent.is_dir():
        raise WorkloadError(f"--json {path} cannot be written: there is no folder {path.parent}")
    if path.is_dir() or not os.access(path.parent, os.W_OK):
        raise WorkloadError(f"--json {path} cannot be written: name a file in a folder that is yours")
    return path


def _rigour(args: argparse.Namespace) -> Rigour:
    for flag, value, least in (
        ("--minutes", args.minutes, 0.1),
        ("--most-requests", args.most_requests, 100),
        ("--least-seconds", args.least_seconds, 0),
        ("--tolerance", args.tolerance, 1),
        ("--shared-words", args.shared_words, 0),
    ):
        if not least <= value < float("inf"):
            raise WorkloadError(f"{flag} {value:g}: must be at least {least:g}")
    seconds = args.minutes * 60
    return Rigour(
        tolerance=args.tolerance / 100,
        least_requests=100,
        most_requests=args.most_requests,
        least_seconds=min(args.least_seconds, RUN_PART * seconds),
        most_run_seconds=RUN_PART * seconds,
        most_seconds=seconds,
    )


def _spec(args: argparse.Namespace) -> Spec:
    try:
        specs = load(args.slo or [DEFAULT_SLO])
    except SpecError as error:
        raise WorkloadError(str(error)) from None
    named = [spec for spec in specs if args.service in (None, spec.service)]
    if len(named) == 1:
        return named[0]
    services = ", ".join(spec.service for spec in specs)
    raise WorkloadError(f"--service {args.service or 'is missing'}: the spec describes {services}; name one of them")


def _settings(args: argparse.Namespace, setting: Setting, spec: Spec) -> dict[str, object]:
    """Everything that is needed to repeat it."""
    return {
        "target": setting.target.url,
        "model": setting.workload.model,
        "service": spec.service,
        "spec": spec.hash,
        "objectives": [one.model_dump(mode="json", exclude_defaults=True) for one in setting.promises.judged],
        "left_out": list(setting.promises.left_out),
        "workload": setting.workload.lengths.source,
        "mean_tokens": list(setting.workload.lengths.mean),
        "shared_words": setting.workload.shared_words,
        "class": setting.request_class,
        "seed": setting.seed,
        "minutes": args.minutes,
        "most_requests": args.most_requests,
        "least_seconds": args.least_seconds,
        "tolerance": args.tolerance,
        "max_in_flight": args.max_in_flight,
        "timeout_s": args.timeout,
    }


def _resumed(path: Path, settings: Mapping[str, object]) -> tuple[Account, Tokens | None]:
    """What an earlier sitting heard. Raises WorkloadError where it was about something else."""
    try:
        read = orjson.loads(path.read_bytes())
        before = dict(read["settings"])
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        raise WorkloadError(f"--resume: {path} holds no result to go on with: begin without --resume") from None
    tokens = before.pop("tokens", None)
    for name, value in settings.items():
        if before.get(name) != orjson.loads(orjson.dumps(value)):
            raise WorkloadError(f"--resume: {path} was made with {name} {before.get(name)}, not {value}: begin anew")
    return account(read["heard"]), None if tokens is None else Tokens(**tokens)
