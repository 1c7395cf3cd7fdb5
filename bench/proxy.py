"""What the sidecar costs as a proxy: CPU per streamed chunk and per short request, added TTFT, memory.

Everything is measured in one run, before the same source, by the same client, arm by arm in turns, so that a busy
machine disturbs all alike: read ratios. README.md beside this file says more.

    bench/proxy.py                                     everything, some minutes
    bench/proxy.py --quick                             everything, coarsely
    bench/proxy.py --only chunk --arms nginx,sidecar   one pair at one measurement
    bench/proxy.py --arms nginx,sidecar,sidecar@../old two checkouts
    bench/proxy.py --check                             exit 1 if a promise is not kept
"""

import argparse
import gc
import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import uvloop
from rig.arms import NAMES, NGINX_MISSING, nginx_path, starter
from rig.figures import Figures, Turn
from rig.promises import verdicts
from rig.stand import FULL, QUICK, SMOKE, Lengths, Stand, running
from rig.table import markdown, table
from rig.turns import GROUPS, MEASUREMENTS, Measurement

# The run.


async def measured(stand: Stand, measurements: list[Measurement]) -> Figures:
    """Every arm's turn at every measurement in every round, in one order and then in the other."""
    say(f"warming {', '.join(stand.arms)}")
    await stand.warm()
    await stand.measure_idle()
    gc.collect()
    gc.freeze()
    gc.disable()  # the client's pauses would look like the arms'
    figures, rounds = Figures(), stand.lengths.rounds
    for number in range(1, rounds + 1):
        for measurement in measurements:
            if measurement.last_round_only and number < rounds:
                continue
            names = [name for name in stand.arms if name != "direct" or measurement.has_direct]
            for name in names if number % 2 else reversed(names):
                say(f"round {number} of {rounds}: {measurement.group}, {name}")
                figures.add(number, name, await one_turn(stand, measurement, name))
        gc.collect()
    say("")
    stand.close()
    return figures


async def one_turn(stand: Stand, measurement: Measurement, name: str) -> Turn:
    """An arm that does not get through its turn has no value in it, and new connections afterwards."""
    arm, began_ns = stand.arms[name], time.perf_counter_ns()
    waited_ns = arm.waited_ns()
    try:
        turn = await measurement.turn(stand, name)
    except TimeoutError:
        say(f"{name} did not get through: {measurement.group}", stays=True)
        await stand.end_streams()
        stand.fleets[name].close()
        return Turn()
    share = max(0, arm.waited_ns() - waited_ns) / (time.perf_counter_ns() - began_ns)
    return replace(turn, doubts=turn.doubts | {"waited for a core": share})


def say(line: str, *, stays: bool = False) -> None:
    """Progress, on one line where there is a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{line}", end="\n" if stays else "", file=sys.stderr, flush=True)
    elif line:
        print(line, file=sys.stderr, flush=True)


# What is printed.


def machine() -> str:
    """The kind of machine and of what was measured on it."""
    info = Path("/proc/cpuinfo").read_text()
    model = info.split("model name\t: ")[1].split("\n")[0] if "model name\t: " in info else platform.machine()
    nginx = nginx_path()
    version = "no nginx"
    if nginx is not None:
        version = subprocess.run([nginx, "-v"], capture_output=True, text=True).stderr.strip().split(": ")[-1]
    python = f"Python {platform.python_version()}, uvloop {metadata.version('uvloop')}"
    return f"{os.cpu_count()} cores, {model}; {python}, {version}"


def busy_s() -> float:
    """Of all cores together since boot, stolen time included: user, nice, system, irq, softirq, steal."""
    fields = [int(text) for text in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def flags() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="What the sidecar costs as a proxy.")
    parser.add_argument("--only", metavar="LIST", default=",".join(GROUPS), help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--arms", metavar="LIST", default="direct,nginx,sidecar,fastapi", help=f"of {NAMES}")
    parser.add_argument(
        "--rounds", type=int, help=f"turns of each arm (default {FULL.rounds}; {QUICK.rounds} if short)"
    )
    length = parser.add_mutually_exclusive_group()
    length.add_argument(
        "--quick", dest="lengths", action="store_const", const=QUICK, help="short turns, coarse figures"
    )
    length.add_argument("--smoke", dest="lengths", action="store_const", const=SMOKE, help="few streams: does it run?")
    parser.set_defaults(lengths=FULL)
    parser.add_argument("--no-pin", action="store_true", help="let the kernel choose the cores")
    parser.add_argument("--realtime", action="store_true", help="run before all other work (SCHED_RR; needs root)")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every value of every round there")
    parser.add_argument("--markdown", action="store_true", help="print the table that README.md keeps")
    parser.add_argument("--check", action="store_true", help="exit 1 if a promise is not kept")
    return parser


def run_before_others(parser: argparse.ArgumentParser) -> None:
    """This process and those that it starts."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        parser.error("--realtime needs the right to set a real-time priority (CAP_SYS_NICE): run as root or without it")


def listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def choices(parser: argparse.ArgumentParser, given: argparse.Namespace) -> tuple[list[str], list[str]]:
    """The arms and the groups of measurements that were asked for; ends the program on what can't be."""
    names, groups = listed(given.arms), listed(given.only)
    if unknown := [name for name in names if starter(name) is None]:
        parser.error(f"--arms {','.join(unknown)}: there is no such arm; use {NAMES}")
    if unknown := [name for name in groups if name not in GROUPS]:
        parser.error(f"--only {','.join(unknown)}: there is no such measurement; use {', '.join(GROUPS)}")
    if given.rounds is not None and given.rounds < 1:
        parser.error(f"--rounds {given.rounds}: at least 1")
    if given.check and ("sidecar" not in names or given.lengths is SMOKE):
        parser.error("--check judges the arm `sidecar` at its full number of streams: not without it, not with --smoke")
    if "nginx" in names and nginx_path() is None:
        if given.check:
            parser.error(f"--check compares with nginx: {NGINX_MISSING}")
        print(f"{NGINX_MISSING}; nothing is compared with it", file=sys.stderr)
        names.remove("nginx")
    return names, groups


def main() -> int:
    parser = flags()
    given = parser.parse_args()
    names, groups = choices(parser, given)
    if given.realtime:
        run_before_others(parser)
    lengths: Lengths = given.lengths if given.rounds is None else replace(given.lengths, rounds=given.rounds)
    began_s, busy = time.monotonic(), busy_s()
    with running(names, lengths, pinned=not given.no_pin) as stand:
        wanted = [m for m in MEASUREMENTS if m.group in groups and (lengths.whole or not m.takes_long)]
        figures = uvloop.run(measured(stand, wanted))
        took_s, others_s = time.monotonic() - began_s, busy_s() - busy - stand.cpu_ns() / 1e9
    print(f"{time.strftime('%Y-%m-%d')}: {machine()}; rounds: {lengths.rounds}, in {took_s:.0f} s")
    print(f"other work on this machine meanwhile: {max(0.0, others_s) / took_s:.1f} cores")
    print("\n".join(markdown(figures, names) if given.markdown else table(figures)))
    idle = ", ".join(f"{name} {share * 1e3:.1f}" for name, share in stand.idle.items() if name != "direct")
    print(f"CPU with nothing to do, taken off above, ms a second: {idle}")
    said = list(verdicts(figures, names)) if lengths.scale == 1.0 else []
    print("\n".join(verdict.line for verdict in said))
    if given.json:
        given.json.write_text(json.dumps(figures.as_json(), indent=1) + "\n")
    return 1 if given.check and not all(verdict.kept for verdict in said) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
