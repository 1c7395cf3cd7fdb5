"""What the queue guard does in an overload: a demo server at twice its capacity, behind a sidecar that refuses late
streams, one that only says which, and one without a guard.

    open loop, Poisson ─▶ sidecar --shed MODE ─▶ demo server          each mode with a server of its own, one by one

The capacity is measured first, by a flood. Times to first token are the client's, from when a request was due.
`--check` makes the exit code say whether, with the guard on, the admitted kept the objective, and enough were admitted.
"""

import argparse
import asyncio
import os
import re
import sys
import tempfile
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))  # a script's own folder is on the path, the project's is not

from capacity import load
from capacity.client import target
from capacity.record import Load, Record
from capacity.schedule import Span, Workload, arrivals, fixed, poisson
from firsttoken import demo_plan
from firsttoken.processes import Command, Family
from sidecar.guarding.queue_guard import SHEDDING
from slo.signals import GUARDED, LABELS, RESULT, TTFT_PREDICTION_ERROR, VERDICT

THRESHOLD_S, SHARE = 1.5, 0.95
SLO_YAML = f"""\
service: chat
objectives:
  - {{name: ttft, signal: ttft, percentile: {SHARE * 100:g}, threshold: {THRESHOLD_S}s}}
  - {{name: answered, signal: availability, target: 99%}}
"""
WORDS, TOKENS = Span(5, 40), Span(6, 14)
# A step takes its time whatever else the machine does: the capacity is that of eight slots, not of a busy processor.
SERVER = ("--max-batch", "8", "--max-model-len", "512", "--step-ms", "80", "--model", demo_plan.MODEL)
FLOOD_S, WARM_S = 8.0, 10.0
LEAST_USED = 0.8  # of the capacity, by who was admitted


@dataclass(frozen=True, slots=True)
class Found:
    """One mode: what clients met after a warm-up, and what the sidecar's page says."""

    mode: str
    records: tuple[Record, ...]
    page: str
    seconds: float

    @property
    def admitted(self) -> list[float]:
        """Times to first token, shortest first; of one that none came to, the time until it was over."""
        return sorted(one.ttft_s or one.e2e_s for one in self.records if one.outcome != "rejected")

    @property
    def p95_s(self) -> float:
        return self.admitted[int(len(self.admitted) * SHARE)]

    def verdicts(self) -> Counter[tuple[str, str]]:
        """Streams by verdict and by what came of them."""
        said: Counter[tuple[str, str]] = Counter()
        for labels, value in re.findall(rf"^{GUARDED.prometheus}\{{(.*)\}} (\S+)$", self.page, re.MULTILINE):
            named = dict(re.findall(r'(\w+)="([^"]*)"', labels))
            said[named[LABELS[VERDICT]], named[LABELS[RESULT]]] += int(float(value))
        return said

    def error_s(self) -> float | None:
        """The mean error of predictions."""
        name = TTFT_PREDICTION_ERROR.prometheus
        found = [re.findall(rf"^{name}_{what}\S* (\S+)$", self.page, re.MULTILINE) for what in ("sum", "count")]
        seconds, count = (sum(map(float, values)) for values in found)
        return seconds / count if count else None


@asynccontextmanager
async def service(folder: Path, mode: str) -> AsyncIterator[tuple[str, str]]:
    """A demo server and a sidecar before it: the URLs of the proxy and of its page."""
    await asyncio.to_thread(_prepare, folder)
    environ = demo_plan.environment(os.environ)
    async with Family(folder) as family:
        python = (sys.executable, "-m")
        server = await family.start(
            Command("demo-server", (*python, "demo_server", "--listen", "127.0.0.1:0", *SERVER), environ)
        )
        upstream = (await server.says(r"^listening on (http://\S+)$"))[1]
        flags = ("--upstream", upstream, "--slo", str(folder / "slo.yaml"), "--shed", mode, "--gpu", "off")
        listen = ("--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
        sidecar = await family.start(Command("sidecar", (*python, "sidecar", *flags, *listen), environ))
        yield (await sidecar.says(r"^proxy: (http://\S+)$"))[1], (await sidecar.says(r"^admin: (http://\S+)$"))[1]


def _prepare(folder: Path) -> None:
    folder.mkdir()
    (folder / "slo.yaml").write_text(SLO_YAML)


async def ask(url: str, times: Sequence[float], *, seed: int) -> Load:
    workload = Workload(((demo_plan.MODEL, 1.0),), WORDS, TOKENS)
    asked = arrivals(times, workload, Random(seed))
    return await load.run(load.Plan(target(url), asked, 0.0, request_class=None, seed=seed))


async def measured_capacity(url: str) -> float:
    """Requests a second that end while more wait than the server takes."""
    flood = await ask(url, list(fixed(30, FLOOD_S)), seed=1)
    ends = sorted(one.end_s for one in flood.records)
    middle = ends[len(ends) // 10 : len(ends) * 17 // 20]
    return (len(middle) - 1) / (middle[-1] - middle[0])


async def overloaded(folder: Path, mode: str, *, rate_rps: float, seconds: float) -> Found:
    async with service(folder / mode, mode) as (proxy, admin):
        await ask(proxy, list(poisson(rate_rps / 4, WARM_S, Random(2))), seed=2)
        found = await ask(proxy, list(poisson(rate_rps, seconds, Random(3))), seed=3)
        page = await asyncio.to_thread(lambda: urllib.request.urlopen(f"{admin}/metrics").read().decode())
    late = tuple(one for one in found.records if one.intended_s > WARM_S)
    return Found(mode, late, page, seconds - WARM_S)


def line(found: Found, capacity_rps: float) -> str:
    admitted, said, error_s = found.admitted, found.verdicts(), found.error_s()
    late = sum(one > THRESHOLD_S for one in admitted) / len(admitted)
    verdicts = ", ".join(f"{verdict} {count}" for (verdict, _), count in sorted(_by_verdict(said).items()))
    right = _right(said)
    return (
        f"{found.mode:7} admitted {len(admitted) / found.seconds / capacity_rps:5.0%} of capacity, "
        f"refused {1 - len(admitted) / len(found.records):4.0%}, TTFT p50 {admitted[len(admitted) // 2]:6.2f} s, "
        f"p95 {found.p95_s:6.2f} s, late {late:4.0%}; {verdicts or 'no guard'}"
        + (f"; late as said {right:.0%}" if right is not None else "")
        + (f"; predictions off by {error_s:.2f} s on average" if error_s is not None else "")
    )


def _by_verdict(said: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    whole: Counter[tuple[str, str]] = Counter()
    for (verdict, _), count in said.items():
        whole[verdict, ""] += count
    return +whole


def _right(said: Counter[tuple[str, str]]) -> float | None:
    """Of the streams that were let through although they would be late: the share that was."""
    late, soon = (said["would_shed", what] + said["probe", what] for what in ("bad", "good"))
    return late / (late + soon) if late + soon else None


async def run(seconds: float, load_factor: float, modes: list[str]) -> bool:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with service(folder / "flood", "off") as (proxy, _):
            capacity_rps = await measured_capacity(proxy)
        rate_rps = load_factor * capacity_rps
        print(f"capacity {capacity_rps:.1f} requests a second; offered {rate_rps:.1f} for {seconds:g} s", flush=True)
        kept = True
        for mode in modes:
            found = await overloaded(folder, mode, rate_rps=rate_rps, seconds=seconds)
            print(line(found, capacity_rps), flush=True)
            if mode == "on":
                used = len(found.admitted) / found.seconds / capacity_rps
                kept = found.p95_s <= THRESHOLD_S and used >= LEAST_USED
        return kept


def main() -> int:
    flags = argparse.ArgumentParser(description="What the queue guard does in an overload.")
    flags.add_argument("--seconds", type=float, default=60.0, help="of load, after a warm-up (default 60)")
    flags.add_argument("--load", type=float, default=2.0, help="times the capacity (default 2)")
    flags.add_argument("--modes", default="off,shadow,on", help=f"of {', '.join(SHEDDING)}")
    flags.add_argument("--check", action="store_true", help="exit 1 if the objective was not kept with the guard on")
    given = flags.parse_args()
    kept = asyncio.run(run(given.seconds, given.load, given.modes.split(",")))
    return 1 if given.check and not kept else 0


if __name__ == "__main__":
    sys.exit(main())
