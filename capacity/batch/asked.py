"""What the flags of `capacity batch` ask for, checked: the promises, the server and how it is loaded."""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace

from capacity.batch.knob import Knob, knob
from capacity.batch.result import Memory, most_sequences
from capacity.batch.search import LEAST_REQUESTS, Plan
from capacity.batch.server import Server
from capacity.certify.endpoint import Setting
from capacity.certify.lengths import Lengths, lengths
from capacity.certify.promises import Promises, promises
from capacity.certify.workload import Workload
from capacity.client import target
from capacity.discovery import first_model
from capacity.errors import TargetError, WorkloadError
from capacity.options import add_flag, add_sending_flags, printable
from capacity.reports import add_report_flags
from capacity.sending import Limits
from capacity.spec import add_spec_flags, named_spec
from capacity.stored.database import add_database_flags
from slo.objective import Spec
from slo.promised import as_kept

DEFAULT_JSON = "capacity-batch.json"
DEFAULT_WORKLOAD = "128:64"
HELD, OPEN = ("tpot",), ("ttft", "e2e")
"""Signals judged with as many outstanding as may run, and under open-loop load."""


def add_to(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """The flags of `batch`."""

    def add(flag: str, **options: object) -> None:
        add_flag(parser, environ, flag, **options)

    add("--target", metavar="URL", help="OpenAI-compatible server; without it the records of --database are read")
    add_spec_flags(parser, environ)
    add("--batch-url", metavar="URL", help='route that gets POST {"max_batch": N}, as /admin/batch of demo-server')
    add("--restart", metavar="CMD", help="command that starts the server with {batch} in it, and ends or goes on")
    add("--batch-now", type=int, metavar="N", help="what to set at the end, where the server does not say it on GET")
    add("--most-batch", type=int, default=256, metavar="N", help="no larger one is tried (%(default)s)")
    add("--rate", type=float, metavar="R", help="requests/s to serve (default: what the batch carries)")
    add("--workload", default=DEFAULT_WORKLOAD, metavar="IN:OUT|FILE", help="tokens, or a trace (%(default)s)")
    add("--shared-words", type=int, default=0, metavar="N", help="words all prompts begin with (%(default)s: unique)")
    add("--model", type=printable, metavar="NAME", help="else the target's first")
    add("--kv-tokens", type=int, metavar="N", help="tokens its KV cache holds, as the server says at its start")
    add("--block-size", type=int, default=16, metavar="N", help="tokens in a KV block (%(default)s)")
    add("--most-requests", type=int, default=400, metavar="N", help="requests of one run (%(default)s)")
    add("--least-seconds", type=float, default=10.0, metavar="S", help="of one run: rarer is not seen (%(default)s)")
    add("--most-seconds", type=float, default=60.0, metavar="S", help="of one run, about (%(default)s)")
    add("--hours", type=float, default=168.0, metavar="N", help="how far back records are read (%(default)s)")
    add("--note", metavar="TEXT", help="what the result shall say of the server: release, flags, GPU")
    add("--seed", type=int, default=0, metavar="S", help="same seed, same requests (%(default)s)")
    add_sending_flags(parser, environ)
    add("--json", metavar="FILE", help=f"the result, kept after every run (default {DEFAULT_JSON})")
    add_report_flags(parser, environ)
    add_database_flags(parser, environ, "keep the result there; without --target, read what it has recorded")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


@dataclass(frozen=True, slots=True)
class Setup:
    """A test of one server, ready to begin."""

    spec: Spec
    server: Server
    plan: Plan
    lengths: Lengths
    memory: Memory
    left_out: tuple[str, ...]
    settings: dict[str, object]


def setup_of(args: argparse.Namespace) -> Setup:
    """The test that the flags describe. Raises CapacityError."""
    _check(args)
    to = target(args.target)
    turned = knob(args.batch_url, args.restart, to)
    drawn, spec = lengths(args.workload), named_spec(args)
    request_class = None if args.request_class == "none" else args.request_class
    limits = Limits(args.max_in_flight, args.timeout)
    model = args.model or first_model(to)
    promised = promises(spec, model, request_class)
    setting = Setting(
        to,
        Workload(model, drawn, args.shared_words),
        promised,
        limits,
        request_class,
        args.seed,
    )
    held, opened = only(promised, HELD), only(promised, OPEN)
    memory = Memory(args.kv_tokens, args.block_size)
    return Setup(
        spec,
        Server(setting, held, opened, turned, args.batch_now),
        _plan(args, held, opened, drawn),
        drawn,
        memory,
        promised.left_out,
        _settings(args, setting, spec, turned),
    )


def only(promised: Promises, signals: tuple[str, ...]) -> Promises:
    """The promises of some signals."""
    return replace(promised, judged=tuple(one for one in promised.judged if one.signal in signals))


def _check(args: argparse.Namespace) -> None:
    if args.target is None:
        raise TargetError(
            "--target is missing: write --target http://HOST:PORT, or --database to read what is recorded"
        )
    for flag, value, least in (
        ("--most-batch", args.most_batch, 1),
        ("--batch-now", args.batch_now, 1),
        ("--kv-tokens", args.kv_tokens, 1),
        ("--block-size", args.block_size, 1),
        ("--most-requests", args.most_requests, 20),
        ("--shared-words", args.shared_words, 0),
        ("--least-seconds", args.least_seconds, 0),
        ("--most-seconds", args.most_seconds, max(args.least_seconds, 1)),
    ):
        if value is not None and not least <= value < float("inf"):
            raise WorkloadError(f"{flag} {value:g}: must be at least {least:g}")
    if args.rate is not None and not 0 < args.rate < float("inf"):
        raise WorkloadError(f"--rate {args.rate:g}: must be above 0")


def _plan(args: argparse.Namespace, held: Promises, opened: Promises, drawn: Lengths) -> Plan:
    most = args.most_batch
    if args.kv_tokens is not None:
        most = min(most, most_sequences(drawn, args.kv_tokens))
        if most < 1:
            raise WorkloadError(f"--kv-tokens {args.kv_tokens} do not hold one request of --workload {args.workload}")
    waits = [float(one.threshold) for one in opened.judged if one.signal == "ttft" and one.threshold is not None]
    return Plan(
        held.goals,
        tuple(float(one.threshold or 0) for one in held.judged),
        opened.goals,
        min(waits, default=None),
        most,
        args.rate,
        least_requests=min(LEAST_REQUESTS, args.most_requests),
        most_requests=args.most_requests,
        least_seconds=args.least_seconds,
        most_seconds=args.most_seconds,
    )


def _settings(args: argparse.Namespace, setting: Setting, spec: Spec, turned: Knob) -> dict[str, object]:
    """Everything that is needed to repeat it."""
    return {
        "target": setting.target.url,
        "note": args.note,
        "knob": type(turned).__name__.lower(),
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
        "rate_rps": args.rate,
        "most_batch": args.most_batch,
        "most_requests": args.most_requests,
        "least_seconds": args.least_seconds,
        "most_seconds": args.most_seconds,
        "kv_tokens": args.kv_tokens,
        "block_size": args.block_size,
        "timeout_s": args.timeout,
    }
