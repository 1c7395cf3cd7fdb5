"""What the collector costs: a span, a histogram point, a tick, a row, a start; beside rotel and Prometheus.

Everything is measured in one run, arm by arm in turns, so that a busy machine disturbs all alike: read ratios.
README.md beside this file says more.

    bench/collector.py                        everything, some minutes
    bench/collector.py --quick --check        everything, coarsely; 1 if a promise is not kept
    bench/collector.py --only intake,tick     some of it
    bench/collector.py --arms http,rotel      some of those that are compared
"""

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

# This file has the name of the package that it measures: the repository comes before its folder.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from collector_parts import prometheus, rotel
from collector_parts.lengths import FULL, QUICK, SMOKE, Lengths
from collector_parts.promises import OURS, verdicts
from collector_parts.turns import ANOTHER, MEASUREMENTS, Bench
from rig.figures import Figures
from rig.table import markdown, table

ARMS = ("http", "grpc", "rotel", "prometheus")
COLUMNS = (OURS, *ARMS, ANOTHER, "sqlite", "postgresql")


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What the collector costs.")
    groups = ",".join(MEASUREMENTS)
    parser.add_argument("--only", metavar="LIST", default=groups, help=f"of {groups}")
    parser.add_argument("--arms", metavar="LIST", default=",".join(ARMS), help=f"of {','.join(ARMS)}")
    parser.add_argument(
        "--rounds", type=int, help=f"turns of each arm (default {FULL.rounds}; {QUICK.rounds} if quick)"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick", dest="lengths", action="store_const", const=QUICK, help="short turns, coarse figures"
    )
    length.add_argument("--smoke", dest="lengths", action="store_const", const=SMOKE, help="few series: does it run?")
    parser.set_defaults(lengths=FULL)
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every value of every round there")
    parser.add_argument("--markdown", action="store_true", help="print the table that README.md keeps")
    parser.add_argument("--check", action="store_true", help="exit 1 if a promise is not kept")
    return parser


def chosen(parser: argparse.ArgumentParser, flag: str, text: str, known: "list[str]") -> list[str]:
    """The names of a list; ends the program on one that nobody has."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    if unknown := [name for name in names if name not in known]:
        parser.error(f"--{flag} {','.join(unknown)}: there is no such thing; use {', '.join(known)}")
    return names


def available(arms: list[str]) -> list[str]:
    """The arms that can run here; what is missing is said."""
    if "rotel" in arms and rotel.agent() is None:
        print("rotel cannot be had from PyPI here: nothing is compared with it", file=sys.stderr)
        arms = [arm for arm in arms if arm != "rotel"]
    if "prometheus" in arms and not prometheus.is_installed():
        print("prometheus is not on PATH: apt-get install prometheus; nothing is compared with it", file=sys.stderr)
        arms = [arm for arm in arms if arm != "prometheus"]
    return arms


def machine() -> str:
    """The kind of machine, and what else it does."""
    info = Path("/proc/cpuinfo").read_text()
    model = info.split("model name\t: ")[1].split("\n")[0] if "model name\t: " in info else platform.machine()
    return f"{os.cpu_count()} cores, {model}; Python {platform.python_version()}; load {os.getloadavg()[0]:.1f}"


def say(line: str) -> None:
    """Progress, on one line where there is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
    elif line:
        print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = flags()
    given = parser.parse_args()
    groups = chosen(parser, "only", given.only, list(MEASUREMENTS))
    arms = chosen(parser, "arms", given.arms, list(ARMS))
    lengths: Lengths = given.lengths
    if given.rounds is not None:
        if given.rounds < 1:
            parser.error(f"--rounds {given.rounds}: at least 1")
        lengths = replace(lengths, rounds=given.rounds)
    if given.check and not lengths.whole:
        parser.error("--check judges 1,000 series: not with --smoke")
    began_s, bench = time.monotonic(), Bench(Figures(), lengths, say)
    arms = available(arms)
    for name in groups:
        MEASUREMENTS[name](bench, arms)
    say("")
    figures = bench.figures
    print(f"{time.strftime('%Y-%m-%d')}: {machine()}; rounds: {lengths.rounds}, in {time.monotonic() - began_s:.0f} s")
    there = [arm for arm in COLUMNS if any(arm in figures.arms(row) for row in figures.rows())]
    print("\n".join(markdown(figures, there) if given.markdown else table(figures)))
    said = list(verdicts(figures)) if lengths.whole else []
    print("\n".join(verdict.line for verdict in said))
    if given.json:
        given.json.write_text(json.dumps(figures.as_json(), indent=1) + "\n")
    return 1 if given.check and not all(verdict.kept for verdict in said) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
