"""What a certification is asked: flags in, one value out, and the settings that repeat it."""

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from capacity.arrivals import peak_rps
from capacity.certify.account import Account, account
from capacity.certify.endpoint import Setting
from capacity.certify.judge import Rigour
from capacity.certify.lengths import Lengths, lengths
from capacity.certify.promises import promises
from capacity.certify.sensitivity import longest_s
from capacity.certify.workload import Tokens, Workload
from capacity.client import target
from capacity.discovery import first_model
from capacity.errors import TargetError, WorkloadError
from capacity.options import writable
from capacity.reports import Reports, reports
from capacity.sending import Limits
from capacity.spec import named_spec
from capacity.stored.database import named_database
from capacity.stored.recorded import NOTE, RECORDED, Whose, recorded_arrivals, recorded_lengths, since_s
from capacity.stored.results import refuse_unfit
from slo.objective import Spec
from slo.promised import as_kept

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

DEFAULT_JSON = "capacity-certify.json"
RUN_PART = 0.12
"""The part of the time that one run may take; a certificate takes two, and a search a few of them."""
SEEN_PART = 0.8
"""Of that, what a run is asked to last at most: by chance requests come sooner, and it would be too short for ever."""


@dataclass(frozen=True, slots=True)
class Asked:
    """`settings` are everything that is needed to repeat it; what is measured first is added to them."""

    setting: Setting
    rigour: Rigour
    spec: Spec
    peak_rps: float | None
    varies: bool
    path: Path
    reports: Reports
    database: "URL | None"
    settings: dict[str, object]

    @property
    def most_s(self) -> float:
        """About how long all runs may take."""
        return self.rigour.most_seconds + (longest_s(self.rigour) if self.varies else 0.0)


def asked(args: argparse.Namespace, environ: Mapping[str, str]) -> Asked:
    """What the flags ask. Raises CapacityError for bad input."""
    path = _path(args)
    files = reports(args)
    if args.target is None:
        raise TargetError("--target is missing: write --target http://HOST:PORT")
    if args.workload is None:
        raise WorkloadError("--workload is missing: write IN:OUT tokens as 512:128, or name a recorded trace")
    database = named_database(args, environ)
    if database is not None:
        refuse_unfit(database)
    to, rigour, spec = target(args.target), _rigour(args), named_spec(args)
    by_hand = None if args.workload == RECORDED else lengths(args.workload)
    limits = Limits(args.max_in_flight, args.timeout)
    model = args.model or first_model(to)
    whose = Whose(spec.environment, spec.service, model, since_s(args.hours, time.time()))
    drawn = by_hand or _recorded(database, whose, args.seed)
    request_class = None if args.request_class == "none" else args.request_class
    setting = Setting(
        to,
        Workload(model, drawn, args.shared_words),
        promises(spec, model, request_class),
        limits,
        request_class,
        args.seed,
    )
    peak = _peak(args.peak, drawn, database, whose)
    return Asked(setting, rigour, spec, peak, args.sensitivity, path, files, database, _settings(args, setting, spec))


def _recorded(database: "URL | None", whose: Whose, seed: int) -> Lengths:
    if database is None:
        raise WorkloadError(f"--workload {RECORDED}: by whom? Name a collector's database by --database")
    pairs = recorded_lengths(database, whose, seed)
    if not pairs:
        raise WorkloadError(f"the database has recorded no tokens of service {whose.text}: state --workload IN:OUT")
    return Lengths(RECORDED, pairs=pairs, note=NOTE)


def _peak(text: str | None, drawn: Lengths, database: "URL | None", whose: Whose) -> float | None:
    """The peak as it is stated or recorded; where nothing is said, that of the recorded workload."""
    if text == RECORDED and database is None:
        raise WorkloadError(f"--peak {RECORDED}: by whom? Name a collector's database by --database")
    if database is not None and (text == RECORDED or (text is None and drawn.source == RECORDED)):
        return peak_rps(recorded_arrivals(database, whose, 0)[0])
    if text is None:
        return drawn.peak_rps
    try:
        rate_rps = float(text)
    except ValueError:
        rate_rps = 0.0
    if not 0 < rate_rps < float("inf"):
        raise WorkloadError(f"--peak {text} is no rate: write requests/s, or {RECORDED}")
    return rate_rps


def _path(args: argparse.Namespace) -> Path:
    """Where the result goes, found writable before the load rather than after it."""
    path = Path(args.json or DEFAULT_JSON)
    if args.json is None and path.exists() and not args.resume:
        raise WorkloadError(f"{path} is already there: go on with it by --resume, or name another by --json")
    return writable("--json", path)


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
        least_seconds=min(args.least_seconds, SEEN_PART * RUN_PART * seconds),
        most_run_seconds=RUN_PART * seconds,
        most_seconds=seconds,
    )


def _settings(args: argparse.Namespace, setting: Setting, spec: Spec) -> dict[str, object]:
    """Everything that is needed to repeat it."""
    return {
        "target": setting.target.url,
        "note": args.note,
        "model": setting.workload.model,
        "service": spec.service,
        "spec": spec.hash,
        "objectives": [as_kept(one) for one in setting.promises.judged],
        "left_out": list(setting.promises.left_out),
        "workload": setting.workload.lengths.source,
        "workload_sha256": setting.workload.lengths.digest,
        "workload_note": setting.workload.lengths.note,
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


def resumed(path: Path, settings: Mapping[str, object]) -> tuple[Account, Tokens | None]:
    """What an earlier sitting heard. Raises WorkloadError where it was about something else."""
    try:
        read = orjson.loads(path.read_bytes())
        before, heard = dict(read["settings"]), read["heard"]
        words = before.pop("tokens", None)
        tokens = None if words is None else Tokens(float(words["fixed"]), float(words["each"]))
    except (OSError, KeyError, TypeError, ValueError):
        raise WorkloadError(f"--resume: {path} holds no result to go on with: begin without --resume") from None
    if tokens is not None and not tokens.each > 0:
        raise WorkloadError(f"--resume: {path} says that a word makes {tokens.each:g} tokens: begin anew")
    for name, value in settings.items():
        if before.get(name) != orjson.loads(orjson.dumps(value)):
            raise WorkloadError(f"--resume: {path} was made with {name} {before.get(name)}, not {value}: begin anew")
    return account(heard), tokens
