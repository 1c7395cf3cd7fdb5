"""Whose objectives a capacity is asked for: one service of a spec."""

import argparse
from collections.abc import Mapping

from capacity.errors import WorkloadError
from capacity.options import add_flag
from slo.objective import Spec, load
from slo.source import SpecError

DEFAULT_SLO = "slo.yaml"


def add_spec_flags(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """`--slo` and `--service`."""
    add_flag(
        parser,
        environ,
        "--slo",
        action="append",
        default=[],
        metavar="FILE",
        help=f"repeatable (default ./{DEFAULT_SLO})",
    )
    add_flag(parser, environ, "--service", metavar="NAME", help="whose objectives, where there are several services")


def named_spec(args: argparse.Namespace) -> Spec:
    """The spec of the service that the flags name. Raises WorkloadError."""
    try:
        specs = load(args.slo or [DEFAULT_SLO])
    except SpecError as error:
        raise WorkloadError(str(error)) from None
    named = [spec for spec in specs if args.service in (None, spec.service)]
    if len(named) == 1:
        return named[0]
    services = ", ".join(spec.service for spec in specs)
    raise WorkloadError(f"--service {args.service or 'is missing'}: the spec describes {services}; name one of them")
