"""Flags that the environment may give: `FIRSTTOKEN_<FLAG>` stands in for a flag that is not written."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from slo.flags import variable


def add_flag(parser: ArgumentParser, environ: Mapping[str, str], flag: str, **options: Any) -> None:
    """A flag whose default its variable may give; a repeatable one takes one value from there, a switch any."""
    set_by = environ.get(variable(flag))
    if set_by is not None:
        is_switch = options.get("action") == "store_true"
        options["default"] = set_by not in ("", "0", "false") if is_switch else set_by
        if options.get("action") == "append":
            options["default"] = [set_by]
    parser.add_argument(flag, **options)
