"""`firsttoken alerts`: writes rules, their tests, Alertmanager routes and runbooks from slo.yaml, and checks them.

Exit codes: 0 fine, 1 a check failed, 2 usage, bad input or a tool that is missing. Nothing is written before everything
is made, and each file is there whole or not at all; what an earlier build wrote for a service that is gone is removed:
Prometheus would load it still.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from alerts import check, crd, grafana, receiver, routes
from alerts.annotations import Links
from alerts.artefacts import SUFFIXES, Formats, artefacts, needed_scrape_interval_s
from alerts.document import GENERATED
from alerts.errors import AlertsError, TargetError
from alerts.group import FLOOR, Version
from alerts.rules import Target
from slo.capacity_result import CapacityResultError, read_results
from slo.flags import Parser, variable
from slo.objective import Spec, load
from slo.output import put, unwritable
from slo.quantity import QuantityError, duration_text, shown, whole_seconds
from slo.source import SpecError
from slo.words import visible

DEFAULT_SLO = "slo.yaml"
USUAL_SCRAPE_INTERVAL_S = 60
"""Prometheus's own default; who scrapes more rarely than that knows it."""
MATCHER = r'[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*"(?:[^"\\\n]|\\.)*"'


def main(argv: list[str] | None = None) -> int:
    """Run `firsttoken alerts ...`; returns the exit code."""
    try:
        args = _parser(os.environ).parse_args(argv)
        return _check(args) if args.command == "check" else _build(args)
    except SpecError as error:
        print(error, file=sys.stderr)
    except (AlertsError, CapacityResultError) as error:
        print(f"firsttoken alerts: {visible(str(error))}", file=sys.stderr)
    except OSError as error:
        print(f"firsttoken alerts: {error.filename or 'output'}: {error.strerror}", file=sys.stderr)
    return 2


def _build(args: argparse.Namespace) -> int:
    specs = load(args.slo or [args.default_slo])
    target = replace(_target(args), certified_rps=_certified_rps(args.capacity, specs))
    texts = artefacts(specs, target, _routing(args), _formats(args))
    out = _folder(args.out)
    for name, text in texts.items():
        print(_written(out / name, text))
    for path in sorted(_left_over(out, texts)):
        path.unlink()
        print(f"removed {path}: its service is no longer in the spec")
    _say_what_scrapes_are_needed(specs, target)
    _say_who_else_is_told(args)
    return 0


def _folder(name: str) -> Path:
    """Where to write; an empty name, as an unset variable of a shell is, is no folder, not the one we stand in."""
    if not name:
        raise TargetError("--out names no folder: write --out rules/")
    return Path(name)


def _written(path: Path, text: str) -> Path:
    try:
        return put(path, text)
    except OSError as error:
        raise TargetError(unwritable(path, error)) from None


def _say_what_scrapes_are_needed(specs: tuple[Spec, ...], target: Target) -> None:
    """A window that Prometheus does not scrape often enough for is empty for ever, and nothing would say so."""
    needed_s = min(needed_scrape_interval_s(objective) for spec in specs for objective in spec.objectives)
    if target.scrape_interval_s is None and needed_s < USUAL_SCRAPE_INTERVAL_S:
        text = duration_text(max(needed_s, 1))
        print(f"note: these rules need a scrape every {text}; --scrape-interval has that checked", file=sys.stderr)


def _say_who_else_is_told(args: argparse.Namespace) -> None:
    """Who says where pages go may not know that tickets still go to a file that nobody wrote, or the reverse."""
    if args.page and not args.ticket:
        print(
            f"note: tickets go to Slack by {receiver.SLACK_URL_FILE}, unless a --ticket- flag is given", file=sys.stderr
        )
    elif args.ticket and not args.page:
        text = f"note: pages go to PagerDuty by {receiver.PAGERDUTY_KEY_FILE}, unless a --page- flag is given"
        print(text, file=sys.stderr)


def _left_over(out: Path, texts: Mapping[str, str]) -> list[Path]:
    """Files of an earlier build, known by their header."""
    old = [path for suffix in SUFFIXES for path in out.glob(f"*{suffix}") if path.name not in texts]
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
        _seconds("--scrape-interval", args.scrape_interval),
        Links(_link("--runbook-url", args.runbook_url), _link("--grafana-url", args.grafana_url)),
        _matchers(args.dcgm),
    )


def _link(flag: str, text: str) -> str:
    """A URL that stands in annotations as it is: nothing in it is a template of Prometheus, or ends a line."""
    if not text.isprintable() or "{{" in text or set(text) & set(" \"'<>`"):
        raise TargetError(f"{flag} {text} is no URL: write https://HOST/PATH")
    return text


def _matchers(text: str) -> str:
    if text and not re.fullmatch(rf"\s*{MATCHER}(\s*,\s*{MATCHER})*\s*,?\s*", text):
        raise TargetError(f'--dcgm {text} are no matchers of Prometheus: write them as namespace="llm",node=~"gpu.*"')
    return text


def _certified_rps(named: Sequence[str], specs: Sequence[Spec]) -> Mapping[str, Decimal]:
    """By service, of those whose file tells it."""
    results = read_results(named, specs)
    for one in results:
        if one.note:
            print(f"note: {one.note}", file=sys.stderr)
    found = {one.service: one.certified_rps for one in results}
    for service in (service for service, rps in found.items() if rps is None):
        print(f"note: no file of --capacity certifies a rate of {service}: no alert is held to one", file=sys.stderr)
    return {service: rps for service, rps in found.items() if rps is not None}


def _formats(args: argparse.Namespace) -> Formats:
    if not args.crd and (args.crd_namespace or args.crd_label):
        raise TargetError("--crd-namespace and --crd-label are of a PrometheusRule: give --crd too, or leave them out")
    return Formats(
        crd.place(args.crd_namespace, args.crd_label) if args.crd else None,
        grafana.Provisioning(args.grafana_datasource, args.grafana_folder) if args.grafana_datasource else None,
    )


def _routing(args: argparse.Namespace) -> routes.Routing:
    return routes.Routing(
        args.page or receiver.pagerduty(),
        args.ticket or receiver.slack(),
        args.watchdog,
        _smtp(args),
        _seconds("--group-wait", args.group_wait),
        _seconds("--group-interval", args.group_interval),
    )


def _smtp(args: argparse.Namespace) -> receiver.Smtp | None:
    if args.smtp_smarthost and args.smtp_from:
        return receiver.smtp(args.smtp_smarthost, args.smtp_from, args.smtp_user, args.smtp_password_file)
    server = "give --smtp-smarthost HOST:PORT and --smtp-from ADDRESS"
    if args.ticket is not None and args.ticket.kind == receiver.EMAIL:
        raise TargetError(f"--ticket-email needs a mail server: {server}")
    if args.smtp_smarthost or args.smtp_from or args.smtp_user or args.smtp_password_file:
        raise TargetError(f"a part of a mail server is missing: {server}, or no flag of --smtp-")
    return None


def _version(text: str) -> Version:
    match = re.fullmatch(r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\..*)?", text)
    if match is None:
        raise TargetError(f"--prometheus-version {shown(text)} is no version: write it as 2.53")
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
    build = commands.add_parser(
        "build",
        help="write rules, their tests, alertmanager.yaml and runbooks",
        description="Write Prometheus rules, their tests, an Alertmanager config and runbooks; name what was written.",
    )
    _build_flags(build, environ)
    _format_flags(build, environ)
    for role, ways in RECEIVERS.items():
        _receiver_flags(build, role, ways, environ)
    checked = commands.add_parser(
        "check",
        help="run promtool and amtool over what build wrote",
        description="Run promtool and amtool over what build wrote. Exit 1: one of them finds a fault.",
    )
    checked.add_argument("dir", metavar="DIR", help="the folder that build wrote to")
    return parser


def _adder(build: argparse.ArgumentParser, environ: Mapping[str, str]) -> Callable[..., None]:
    def add(flag: str, default: str | None = None, **options: Any) -> None:
        """A flag whose default FIRSTTOKEN_<FLAG> may give; an empty one counts as not set."""
        build.add_argument(flag, default=environ.get(variable(flag)) or default, **options)

    return add


def _build_flags(build: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    add = _adder(build, environ)
    spec = environ.get(variable("--slo")) or DEFAULT_SLO
    build.add_argument("--slo", action="append", metavar="FILE", help=f"spec or folder of specs, repeatable ({spec})")
    build.set_defaults(default_slo=spec)
    add("--out", required=not environ.get(variable("--out")), metavar="DIR", help="folder to write to")
    floor = ".".join(map(str, FLOOR))
    add("--prometheus-version", floor, metavar="V", help="the oldest that is to load the rules (%(default)s)")
    add("--eval-interval", metavar="TIME", help="evaluate every group so often, or as often as its windows need")
    add("--query-offset", metavar="TIME", help="judge so much later, for remote write (needs Prometheus 2.53)")
    add("--scrape-interval", metavar="TIME", help="how often Prometheus scrapes: refuse windows too short for it")
    build.add_argument(
        "--capacity",
        action="append",
        default=environ.get(variable("--capacity"), "").split(),
        metavar="[SERVICE=]FILE",
        help="what firsttoken capacity certify found of a service, to tell when it runs above that; repeatable",
    )
    add("--runbook-url", Links().runbook, metavar="PATTERN", help="where runbooks are (%(default)s)")
    add("--grafana-url", "", metavar="URL", help="root of Grafana in links to the dashboard (a relative link)")
    add("--group-wait", metavar="TIME", help="wait before a group's first notification (page 10s, ticket 1m)")
    add("--group-interval", metavar="TIME", help="wait before a group's next notification (5m)")


def _format_flags(build: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    add = _adder(build, environ)
    add("--dcgm", "", metavar="MATCHERS", help='GPUs of dcgm-exporter that are meant, as namespace="llm" (all)')
    build.add_argument(
        "--crd",
        action="store_true",
        default=bool(environ.get(variable("--crd"))),
        help="also write each rule file as a PrometheusRule for the Prometheus operator",
    )
    add("--crd-namespace", metavar="NAME", help="namespace of the PrometheusRules")
    labels = environ.get(variable("--crd-label"), "").split()
    text = "a label that the operator selects it by, as release=prometheus; repeatable"
    build.add_argument("--crd-label", action="append", default=labels, metavar="NAME=VALUE", help=text)
    add(
        "--grafana-datasource",
        metavar="UID",
        help="also write alert rules for Grafana to provision, on this data source",
    )
    add("--grafana-folder", "firsttoken", metavar="NAME", help="Grafana's folder of these rules (%(default)s)")
    add("--smtp-smarthost", metavar="HOST:PORT", help="mail server of --ticket-email")
    add("--smtp-from", metavar="ADDRESS", help="sender of that mail")
    add("--smtp-user", metavar="NAME", help="user name at the mail server")
    add("--smtp-password-file", metavar="FILE", help="the user's password, in a file (needs Alertmanager 0.25)")


Way = Callable[[str], receiver.Receiver]
RECEIVERS: Mapping[str, Mapping[str, tuple[Way, str, str]]] = {
    "page": {
        "--page-webhook": (receiver.webhook, "URL", "pages go to this webhook"),
        "--page-webhook-file": (receiver.webhook_from_file, "FILE", "its URL in a file (needs Alertmanager 0.26)"),
        "--page-pagerduty-file": (receiver.pagerduty, "FILE", f"routing key in a file ({receiver.PAGERDUTY_KEY_FILE})"),
        "--page-opsgenie-file": (receiver.opsgenie, "FILE", "API key of Opsgenie in a file"),
    },
    "ticket": {
        "--ticket-webhook": (receiver.webhook, "URL", "tickets go to this webhook"),
        "--ticket-webhook-file": (receiver.webhook_from_file, "FILE", "its URL in a file (needs Alertmanager 0.26)"),
        "--ticket-slack-file": (receiver.slack, "FILE", f"webhook URL in a file ({receiver.SLACK_URL_FILE})"),
        "--ticket-email": (receiver.email, "ADDRESS", "tickets go by mail"),
    },
    "watchdog": {
        "--watchdog-webhook": (receiver.webhook, "URL", "a sign of life goes here each minute"),
        "--watchdog-webhook-file": (receiver.webhook_from_file, "FILE", "its URL in a file (needs Alertmanager 0.26)"),
    },
}


def _receiver_flags(
    build: argparse.ArgumentParser, role: str, ways: Mapping[str, tuple[Way, str, str]], environ: Mapping[str, str]
) -> None:
    """The ways to tell people, of which one is taken; a flag makes its receiver, and a variable stands in for one.

    `{owner}` in a value gives each owner of objectives a receiver of its own.
    """
    group = build.add_mutually_exclusive_group()
    for flag, (make, metavar, text) in ways.items():
        group.add_argument(flag, dest=role, type=make, metavar=metavar, help=text)
    given = [make(value) for flag, (make, _, _) in ways.items() if (value := environ.get(variable(flag)))]
    build.set_defaults(**{role: given[0] if given else None})
