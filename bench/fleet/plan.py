"""The sizing table: what fleets of so many GPUs ask of collectors, by the unit costs. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fleet.costs import Costs
from fleet.driving import Asked

FULL = 0.6
"""A collector whose busiest thread takes more of a core has no room for the minute after an outage, when all that
waited comes at once."""
JOINED = 50
DAY_S = 86_400
PARTS = ("standing", "service", "replica", "body", "export", "span")


@dataclass(frozen=True, slots=True)
class Site:
    """A fleet as people speak of it."""

    gpus: int
    asked: Asked


SITES = (
    Site(10, Asked(replicas=10, services=1, rps=5)),
    Site(1_000, Asked(replicas=125, services=5, rps=5)),
    Site(100_000, Asked(replicas=12_500, services=50, rps=5)),
)
"""One GPU a replica in the smallest, eight in the others; five requests a second each."""


def units(costs: Costs) -> Iterator[str]:
    """What each part costs, a line each, as README.md keeps it."""
    yield "| | CPU | memory | disk | wire |"
    yield "|---|---:|---:|---:|---:|"
    names = ("collector that stands there", "service", "replica", "body", "export of metrics", "span")
    for name, part in zip(names, PARTS, strict=True):
        of = [getattr(unit, part) for unit in (costs.cpu, costs.rss_mb, costs.disk_bytes, costs.wire_bytes)]
        each = "a second" if part in ("standing", "service", "replica") else "each"
        memory = f"{1000 * of[1]:.1f} KB" if part in ("standing", "service", "replica") else ""
        yield f"| {name} | {1e6 * of[0]:.1f} us {each} | {memory} | {of[2]:.0f} B | {of[3]:.0f} B |"


def table(costs: Costs) -> Iterator[str]:
    """A line for each site, without a gateway and with one."""
    yield "| GPUs | replicas | requests/s | | collectors | CPU, cores | memory | written a day | wire |"
    yield "|---:|---:|---:|---|---:|---:|---:|---:|---:|"
    for site in SITES:
        for joined in (1, JOINED):
            asked = replace(site.asked, joined=joined)
            count = max(math.ceil(costs.busiest.of(asked) / FULL), 1)
            others = count - 1
            yield (
                f"| {site.gpus:,} | {asked.replicas:,} | {asked.spans:,.0f} | {'gateway' if joined > 1 else 'direct'} "
                f"| {count} | {costs.cpu.of(asked) + others * costs.cpu.standing:.2f} "
                f"| {(costs.rss_mb.of(asked) + others * costs.rss_mb.standing) / 1000:.1f} GB "
                f"| {costs.disk_bytes.of(asked) * DAY_S / 1e9:.1f} GB "
                f"| {costs.wire_bytes.of(asked) * 8 / 1e6:.1f} Mbit/s |"
            )


def halves(asked: Asked) -> tuple[Asked, Asked]:
    """The fleet in two, by service, as a gateway routes it."""
    half = replace(asked, replicas=asked.replicas // 2, services=asked.services // 2)
    return half, half
