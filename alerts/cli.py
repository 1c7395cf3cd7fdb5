"""`firsttoken alerts`: writes rules, their tests, Alertmanager routes and runbooks from slo.yaml, and checks them.

Exit codes: 0 fine, 1 a check failed, 2 usage, bad input or a tool that is missing. Nothing is written before everything
is made, and what an earlier build wrote for a service that is gone is removed: Prometheus would load it still.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from alerts import check, routes
from alerts.annotations import Links
from alerts.artefacts import RULES_SUFFIX, TESTS_SUFFIX, artefacts
from alerts.document import GENERATED
from alerts.errors import AlertsError, TargetError
from alerts.group import FLOOR, Version
from alerts.rules import Target
from slo.flags import Parser, variable
from slo.objective import load
from slo.quantity import QuantityError, whole_seconds
from slo.source import SpecError

DEFAULT_SLO = "slo.yaml"


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken alerts ...`; returns the exit code."""
    try:
        args = _parser(os.environ).parse_args(argv)
        return _check(args) if args.command == "check" else _build(args)
    except SpecError as error:
        print(error, file=sys.stderr)
    except AlertsError as error:
        print(f"firsttoken alerts: {error}", file=sys.stderr)
    except OSError as error:
        print(f"firsttoken alerts: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
    return 2


def _build(args: argparse.Namespace) -> int:
    texts = artefacts(load(args.slo or [args.default_slo]), _target(args), _routing(args))
    out = Path(args.out)
    for name, text in texts.items():
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path)
    for path in sorted(_left_over(out, texts)):
        path.unlink()
        print(f"removed {path}: its service is no longer in the spec")
    return 0


def _left_over(out: Path, texts: Mapping[str, str]) -> list[Path]:
    """Files of an earlier build, known by their header."""
    old = [path for suffix in (RULES_SUFFIX, TESTS_SUFFIX) for path in out.glob(f"*{suffix}") if path.name not in texts]
    return [path for path in old if path.read_text(encoding="utf-8", errors="replace").startswith(GENERATED)]


def _check(args: argparse.Namespace) -> int:
    failed = 0
    for finding in check.run(Path(args.dir)):
        failed += not finding.is_fine
        print(f"{'ok' if finding.is_fine else 'FAILED'}: {finding.command}")
        if not finding.is_fine:
            print(finding.said, file=sys.stderr)
    return 1 if failed else 0


def _target(args: argparse.Namespace) -> Target:
    return Target(
        _version(args.prometheus_version),
        _seconds("--eval-interval", args.eval_interval),
        _seconds("--query-offset", args.query_offset) or 0,
        Links(args.runbook_url, args.grafana_url),
    )


def _routing(args: argparse.Namespace) -> routes.Routing:
    return routes.Routing(
        args.page or routes.pagerduty(),
        args.ticket or routes.slack(),
        _seconds("--group-wait", args.group_wait),
        _seconds("--group-interval", args.group_interval),
    )


def _version(text: str) -> Version:
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:\..*)?", text)
    if match is None:
        raise TargetError(f"--prometheus-version {text} is no version: write it as 2.53")
    return int(match[1]), int(match[2])


def _seconds(flag: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return whole_seconds(text)
    except QuantityError as error:
        raise TargetError(f"{flag}: {error}") from None


def _parser(environ: Mapping[str, str]) -> Parser:
    parser = Parser(prog="firsttoken alerts", description="Prometheus rules and Alertmanager routes from slo.yaml.")
    parser.add_version()
    commands = parser.add_subparsers(dest="command", required=True, metavar="build|check")
    build = commands.add_parser("build", help="write rules, their tests, alertmanager.yaml and runbooks")
    _build_flags(build, environ)
    for role, ways in RECEIVERS.items():
        _receiver_flags(build, role, ways, environ)
    checked = commands.add_parser("check", help="run promtool and amtool over what build wrote")
    checked.add_argument("dir", metavar="DIR", help="the folder that build wrote to")
    return parser


def _build_flags(build: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    def add(flag: str, default: str | None = None, **options: Any) -> None:
        """A flag whose default FIRSTTOKEN_<FLAG> may give."""
        build.add_argument(flag, default=environ.get(variable(flag), default), **options)

    spec = environ.get(variable("--slo"), DEFAULT_SLO)
    build.add_argument("--slo", action="append", metavar="FILE", help=f"spec or folder of specs, repeatable ({spec})")
    build.set_defaults(default_slo=spec)
    add("--out", required=variable("--out") not in environ, metavar="DIR", help="folder to write to")
    floor = ".".join(map(str, FLOOR))
    add("--prometheus-version", floor, metavar="V", help="the oldest that is to load the rules (%(default)s)")
    add("--eval-interval", metavar="TIME", help="evaluate every group so often (by its windows)")
    add("--query-offset", metavar="TIME", help="judge so much later, for remote write (needs Prometheus 2.53)")
    add("--runbook-url", Links().runbook, metavar="PATTERN", help="where runbooks are (%(default)s)")
    add("--grafana-url", "", metavar="URL", help="root of Grafana in links to the dashboard (a relative link)")
    add("--group-wait", metavar="TIME", help="wait before a group's first notification (page 10s, ticket 1m)")
    add("--group-interval", metavar="TIME", help="wait before a group's next notification (5m)")


Way = Callable[[str], routes.Receiver]
RECEIVERS: Mapping[str, Mapping[str, tuple[Way, str, str]]] = {
    "page": {
        "--page-webhook": (routes.webhook, "URL", "pages go to this webhook"),
        "--page-webhook-file": (routes.webhook_from_file, "FILE", "its URL in a file (needs Alertmanager 0.26)"),
        "--page-pagerduty-file": (routes.pagerduty, "FILE", f"routing key in a file ({routes.PAGERDUTY_KEY_FILE})"),
    },
    "ticket": {
        "--ticket-webhook": (routes.webhook, "URL", "tickets go to this webhook"),
        "--ticket-webhook-file": (routes.webhook_from_file, "FILE", "its URL in a file (needs Alertmanager 0.26)"),
        "--ticket-slack-file": (routes.slack, "FILE", f"webhook URL in a file ({routes.SLACK_URL_FILE})"),
    },
}


def _receiver_flags(
    build: argparse.ArgumentParser, role: str, ways: Mapping[str, tuple[Way, str, str]], environ: Mapping[str, str]
) -> None:
    """The ways to tell people, of which one is taken; a flag makes its receiver, and a variable stands in for one."""
    group = build.add_mutually_exclusive_group()
    for flag, (make, metavar, text) in ways.items():
        group.add_argument(flag, dest=role, type=make, metavar=metavar, help=text)
    given = [make(environ[variable(flag)]) for flag, (make, _, _) in ways.items() if variable(flag) in environ]
    build.set_defaults(**{role: given[0] if given else None})
