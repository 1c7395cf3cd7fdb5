"""`firsttoken capacity certify`: the highest rate at which a server is shown to keep its objectives.

Exit codes: 0 a rate is certified, 1 none is, 2 usage, bad input or a target that cannot be asked, 130 interrupted.
"""

import argparse
import asyncio
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rich.console import Console

from capacity.certify.account import Account
from capacity.certify.asked import DEFAULT_JSON, Asked, asked, resumed
from capacity.certify.endpoint import Endpoint, Setting
from capacity.certify.page import page_of
from capacity.certify.report import progress, report
from capacity.certify.result import Result
from capacity.certify.search import Outcome, search
from capacity.certify.sensitivity import search_and_vary
from capacity.certify.sitting import sit
from capacity.certify.workload import Tokens
from capacity.options import add_flag, add_sending_flags, printable, write_json
from capacity.printed import paper, print_left_out
from capacity.reports import add_report_flags
from capacity.spec import add_spec_flags
from capacity.stored.database import add_database_flags
from capacity.stored.recorded import RECORDED
from capacity.stored.results import Found, keep

DEFAULT_MINUTES = 15.0
INTERRUPTED = 130


def add_to(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """The flags of `certify`."""

    def add(flag: str, **options: object) -> None:
        add_flag(parser, environ, flag, **options)

    add("--target", metavar="URL", help="OpenAI-compatible server, as http://127.0.0.1:8001")
    add_spec_flags(parser, environ)
    add(
        "--workload",
        metavar=f"IN:OUT|FILE|{RECORDED}",
        help=f"tokens as 512:128 or 100-900:20-200; a recorded trace; or, from --database, what is {RECORDED} there",
    )
    add("--shared-words", type=int, default=0, metavar="N", help="words all prompts begin with (%(default)s: unique)")
    add("--model", type=printable, metavar="NAME", help="else the target's first")
    add("--peak", metavar=f"R|{RECORDED}", help="requests/s expected, to say what headroom is left")
    add("--hours", type=float, metavar="N", help=f"how far back what is {RECORDED} is read (default: all of it)")
    add("--minutes", type=float, default=DEFAULT_MINUTES, metavar="N", help="about how long it may take (%(default)s)")
    add("--most-requests", type=int, default=20_000, metavar="N", help="requests of one run (%(default)s)")
    add("--least-seconds", type=float, default=30.0, metavar="S", help="of one run: rarer is not seen (%(default)s)")
    add("--tolerance", type=float, default=4.0, metavar="PERCENT", help="how close to come (%(default)s)")
    add(
        "--sensitivity",
        action="store_true",
        help="see also what other lengths and prefixes do at the certified rate: a quarter longer at most",
    )
    add("--note", metavar="TEXT", help="what the result shall say of the server: release, flags, GPU")
    add("--seed", type=int, default=0, metavar="S", help="same seed, same requests (%(default)s)")
    add_sending_flags(parser, environ)
    add("--json", metavar="FILE", help=f"the result, kept after every run (default {DEFAULT_JSON})")
    add_report_flags(parser, environ)
    add_database_flags(parser, environ, "keep the result there, where dashboards and alerts find it")
    add("--resume", action="store_true", help="go on with an interrupted result of the same settings")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")


def certify(args: argparse.Namespace) -> int:
    """Run `firsttoken capacity certify`; raises CapacityError for bad input."""
    of = asked(args, os.environ)
    heard, tokens = resumed(of.path, of.settings) if args.resume else (Account(), None)
    run = _Certification(of, heard)
    outcome = asyncio.run(run.run(tokens, Console(stderr=True, quiet=args.quiet)))
    result = run.result(outcome)
    if not args.quiet:
        _print(result, of.setting)
    of.reports.write(page_of(result, of.settings))
    if of.database is not None and outcome is not None:
        whole, setting = result.as_json(of.settings), of.setting
        whose = of.spec.environment, of.spec.service, setting.workload.model, setting.target.url
        keep(of.database, Found(int(time.time()), "certify", *whose, whole))
    return INTERRUPTED if outcome is None else int(outcome.certified is None)


def _print(result: Result, setting: Setting) -> None:
    console = paper()
    console.print(report(result))
    if setting.workload.lengths.note:
        console.print(f"workload: {setting.workload.lengths.note}")
    print_left_out(console, setting.promises.left_out)


@dataclass(slots=True)
class _Certification:
    """One sitting, and where its result is kept."""

    _of: Asked
    _heard: Account

    def result(self, outcome: Outcome | None) -> Result:
        of = self._of
        shared_words, now_s = of.setting.workload.shared_words, int(time.time())
        return Result(outcome, self._heard, of.setting.promises.goals, of.rigour, of.peak_rps, shared_words, now_s)

    async def run(self, tokens: Tokens | None, console: Console) -> Outcome | None:
        """Search; None when SIGINT or SIGTERM came first."""
        spent_s = sum(kept.looks[-1].seconds for kept in self._heard.runs.values())
        outcome = None
        with progress(console, spent_s, self._of.most_s) as show:
            endpoint = Endpoint(self._of.setting, show)
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
        of = self._of
        if tokens is None:
            tokens = (await endpoint.measure_words()).tokens
        else:
            endpoint.use(replace(of.setting.workload, tokens=tokens))
        of.settings["tokens"] = {"fixed": tokens.fixed, "each": tokens.each}
        begin = search_and_vary if of.varies else search
        going = begin(of.setting.promises.goals, of.rigour)
        return await sit(endpoint, self._heard, going, on_kept=lambda: self._keep(None))

    def _keep(self, outcome: Outcome | None) -> None:
        made = self.result(outcome).as_json(self._of.settings)
        write_json(self._of.path, made)
