"""What a fleet costs its collectors: unit costs from small runs, the sizing table, and large fleets tried against it.

A real sidecar's export is recorded once; then real collectors take it in real time from so many replicas, each with
its own name and phase. Six small runs give the unit costs (`fleet/costs.py`); the fleets that are tried after that are
ten and more times larger, and must cost what the units foretell, within a quarter.

    bench/scale.py              everything, about 15 minutes
    bench/scale.py --quick      shorter looks
    bench/scale.py --check      1 if a fleet costs more or less than foretold
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fleet import plan
from fleet.costs import RUNS, Costs, costs
from fleet.driving import Asked, Seen, drive
from fleet.recording import Recording, record
from fleet.replica import voice

WITHIN = 0.25
LATE = 0.01
TRIALS = (
    Asked(replicas=2_000, services=20, rps=1),
    Asked(replicas=10_000, services=20, rps=1, joined=plan.JOINED),
)
SPLIT = TRIALS[1]
"""Tried once more in two halves, on two collectors at once."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A fleet that was foretold and tried, on so many collectors."""

    asked: Asked
    collectors: int
    foretold: float
    fullest: float
    """The share of a core that the busiest thread of one of them was foretold to take."""
    cpu: float
    late: float
    failed: int

    @property
    def kept(self) -> bool:
        """It cost what was foretold; or it was foretold to be more than a thread can do, and was."""
        overrun = self.late > LATE or self.failed > 0
        return overrun if self.fullest > 1 else not overrun and abs(self.cpu / self.foretold - 1) <= WITHIN

    def __str__(self) -> str:
        how = "behind a gateway" if self.asked.joined > 1 else "direct"
        said = (
            f"{self.asked.replicas:,} replicas, {self.asked.services} services, {how}, {self.collectors} collector(s)"
        )
        off = f"foretold {self.foretold:.2f} cores, took {self.cpu:.2f} ({self.cpu / self.foretold - 1:+.0%})"
        if self.fullest > 1:
            off = f"foretold to be full (a thread at {self.fullest:.0%}), took {self.cpu:.2f} cores"
        trouble = f"; {self.late:.0%} of the bodies late" if self.late > LATE else ""
        trouble += f"; {self.failed} bodies refused" if self.failed else ""
        return f"{'kept    ' if self.kept else 'NOT KEPT'}  {said}: {off}{trouble}"


@dataclass(frozen=True, slots=True)
class Looks:
    """How long a collector is let run in, and looked at. A whole number of ticks of ten seconds."""

    warm_s: float
    look_s: float

    def at(self, recording: Recording, asked: Asked, first: int = 0) -> Seen:
        spoken = voice(recording, services=asked.services, rps=asked.rps, every_s=asked.every_s)
        warm_s = max(self.warm_s, asked.every_s + 5)
        return drive(asked, spoken, warm_s=warm_s, look_s=self.look_s, first=first)


def measured(looks: Looks, recording: Recording) -> Iterator[Seen]:
    for asked in RUNS:
        say(f"measuring {asked}")
        yield looks.at(recording, asked)


def tried(looks: Looks, recording: Recording, known: Costs) -> Iterator[Trial]:
    for asked in TRIALS:
        say(f"trying {asked}")
        seen = looks.at(recording, asked)
        yield Trial(asked, 1, known.cpu.of(asked), known.busiest.of(asked), seen.cpu, seen.late, seen.failed)
    say(f"trying {SPLIT} on two collectors")
    halves = plan.halves(SPLIT)
    with ThreadPoolExecutor(2) as both:
        firsts = (0, halves[0].replicas)
        seens = list(both.map(lambda half, first: looks.at(recording, half, first), halves, firsts))
    foretold = sum(known.cpu.of(half) for half in halves)
    cpu, late = sum(seen.cpu for seen in seens), max(seen.late for seen in seens)
    yield Trial(SPLIT, 2, foretold, known.busiest.of(halves[0]), cpu, late, sum(seen.failed for seen in seens))


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="What a fleet costs its collectors.")
    parser.add_argument("--quick", action="store_true", help="looks of 20 s instead of 60 s")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write every run there")
    parser.add_argument("--check", action="store_true", help="exit 1 if a fleet costs a quarter more or less")
    given = parser.parse_args()
    looks = Looks(20.0, 20.0) if given.quick else Looks(30.0, 60.0)
    recording = record()
    seen = list(measured(looks, recording))
    known = costs(seen)
    trials = list(tried(looks, recording, known))
    print(f"{time.strftime('%Y-%m-%d')}: {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f}\n")
    print("\n".join((*plan.units(known), "", *plan.table(known), "", *map(str, trials))))
    if given.json:
        found = {"runs": [asdict(one) for one in seen], "trials": [asdict(one) for one in trials]}
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    return 1 if given.check and not all(trial.kept for trial in trials) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
