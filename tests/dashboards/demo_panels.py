"""Asks every panel of every dashboard while a real demo runs, and lists those without data: `make check-dashboards`.

The demo is the real thing: an engine, a sidecar, a collector, users, an incident, and a Prometheus that scrapes them
and evaluates the generated rules. Its dashboards are built from its own contract, over Prometheus and over the
collector's SQLite, and asked every few seconds until the story is over. A panel has data when its first query once
gave a row. Each that never did must stand in `EMPTY` with the reason.
"""

import re
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from slo.objective import load
from tests.dashboards import stack
from tests.dashboards.support import Found, everything, figures, promql, query_of, sql

EVERY_S = 10.0
LEAST_SHARE = 0.95
RANGE_S = 600
HARDWARE = {"gpu": "no GPU is under the demo, and no dcgm-exporter beside it"}
"""Dashboards that need what the demo has not."""
EMPTY = {
    "Receivers that listen": "Prometheus notifies here, not the collector",
    "Ended without a value": "every request has its value in the end (over SQL; Prometheus shows 0)",
    "Workers at work": "the demo's sidecar is one process",
    "Rules that fail or are late": "the demo's Prometheus does not scrape itself",
    "Shift against its own past": "nothing shifts against a past of two minutes (over SQL; Prometheus shows 0)",
}
"""Panels that a demo leaves empty, each with the reason."""


@dataclass(slots=True)
class Tally:
    """Which panels of a datasource have had data, and which queries were refused."""

    seen: dict[tuple[str, str], bool] = field(default_factory=dict)
    faults: set[str] = field(default_factory=set)

    def add(self, board: str, title: str, *, has_data: bool) -> None:
        self.seen[board, title] = self.seen.get((board, title), False) or has_data


def main() -> int:
    """Run the demo, ask, and report; 1 when too many panels are empty, or one without a known reason."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "demo"
        command = [sys.executable, "-m", "firsttoken", "demo", "--seconds", "60", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo:
            tallies = _asked(demo, folder)
        if demo.returncode:
            print(f"the demo failed ({demo.returncode})", file=sys.stderr)
    return 1 if demo.returncode or [name for name, tally in tallies.items() if not _report(name, tally)] else 0


def _asked(demo: "subprocess.Popen[str]", folder: Path) -> Mapping[str, Tally]:
    """Every panel, again and again while the story lasts."""
    url = _prometheus(demo)
    boards = {name: everything(name, load([folder / "slo.yaml"])) for name in ("prometheus", "sqlite")}
    tallies = {name: Tally() for name in boards}
    assert demo.stdout is not None
    last = 0.0
    for line in demo.stdout:  # the demo says something every few seconds
        print(line, end="")
        if time.monotonic() - last >= EVERY_S and "TTFT p95" not in line:
            _ask_prometheus(tallies["prometheus"], boards["prometheus"], url)
            _ask_sqlite(tallies["sqlite"], boards["sqlite"], folder / "firsttoken.db")
            last = time.monotonic()
    return tallies


def _prometheus(demo: "subprocess.Popen[str]") -> str:
    """Where the demo's Prometheus answers."""
    assert demo.stdout is not None
    for line in demo.stdout:
        print(line, end="")
        if match := re.match(r"prometheus: (\S+)/alerts", line):
            return match[1]
    raise SystemExit("the demo has no Prometheus: tests/install_tools.sh installs it")


def _queries(boards: Mapping[str, Found]) -> Iterator[tuple[str, Found, str, str]]:
    """The first query of every panel, with its dashboard and title."""
    for board, found in boards.items():
        for one in figures(found):
            yield board, found, one["title"], query_of(one["targets"][0])


def _ask_prometheus(tally: Tally, boards: Mapping[str, Found], url: str) -> None:
    for board, found, title, text in _queries(boards):
        try:
            rows = stack.values(url, promql(text, found, interval="20s"))
        except AssertionError as error:
            tally.faults.add(f"{board}: {title}: {error}")
        except OSError:
            return  # the story is over
        else:
            tally.add(board, title, has_data=bool(rows))


def _ask_sqlite(tally: Tally, boards: Mapping[str, Found], path: Path) -> None:
    end_s = int(time.time())
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)) as connection:
        for board, found, title, text in _queries(boards):
            asked = sql(text.replace("$__interval_ms", "10000"), found, start_s=end_s - RANGE_S, end_s=end_s)
            try:
                tally.add(board, title, has_data=bool(connection.execute(asked).fetchmany(1)))
            except sqlite3.Error as error:
                tally.faults.add(f"{board}: {title}: {error}")


def _report(datasource: str, tally: Tally) -> bool:
    """Say what was found over a datasource; whether that is enough."""
    of_demo = {key: has for key, has in tally.seen.items() if key[0] not in HARDWARE}
    empty = [key for key, has in of_demo.items() if not has]
    share = 1 - len(empty) / len(of_demo)
    print(f"\n{datasource}: {len(of_demo) - len(empty)} of {len(of_demo)} panels have data ({share:.1%})")
    for board, title in empty:
        print(f"  empty: {board}: {title}: {EMPTY.get(title, 'NO KNOWN REASON')}")
    for board, reason in HARDWARE.items():
        print(f"  left out: the {sum(key[0] == board for key in tally.seen)} panels of {board}: {reason}")
    for fault in sorted(tally.faults):
        print(f"  REFUSED: {fault}")
    return share >= LEAST_SHARE and not tally.faults and all(title in EMPTY for _, title in empty)


if __name__ == "__main__":
    sys.exit(main())
