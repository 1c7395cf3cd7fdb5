"""What happens to a service, and what its people want to hear of it: the table is `CASES`.

Incidents are faults of the demo server; quiet cases are what must not ring. Time is never hastened: where the windows
of a case are shorter than in production, its contract says so, and an hour is what its long window calls one.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from injected.incidents import NO_FAULT

from capacity import load
from capacity.client import target
from capacity.record import Load
from capacity.schedule import Span, Workload, arrivals, fixed
from firsttoken import demo_plan
from firsttoken.errors import ChildError
from firsttoken.processes import Command
from paging_parts.service import COLLECTOR, PROMETHEUS, Service
from paging_parts.spec import COARSE_YAML, MINUTES, MODELS, SHORTEST, TTFT_S, slo_yaml
from paging_parts.verdict import Played, Wanted
from slo.trouble import SILENT_S, TELEMETRY_ABSENT, TROUBLES

RATE_RPS = 3.0
CERTIFY_MINUTES = "5"
FEW_RPS = 0.05
"""So few that what a run of `capacity` does to them is less than the least that an alert asks for."""
HEALTHY_S = 20.0
AFTER_S = 55.0
"""Longer than a short window, a tick and the wait of a group: what such an end could still set off has come by then."""
RESOLVE_LIMIT_S = 150.0
LOOK_S = 0.5
FAILING: Mapping[str, object] = {"errors": 1.0}


NOTHING = Wanted()


@dataclass(frozen=True, slots=True)
class Case:
    """One of them: `about` is for people, `usual_s` what it takes with its start, to begin the longest first."""

    name: str
    about: str
    usual_s: float
    play: Callable[[Service], Awaitable[Played]]
    wanted: Wanted = NOTHING
    slo_yaml: str = slo_yaml(SHORTEST)


@dataclass(frozen=True, slots=True)
class Pace:
    """Of an incident: how long all is well before it, how long it lasts after every path has paged, and how long it is
    looked at after every path has resolved; how many requests a second users send."""

    hold_s: float
    healthy_s: float = HEALTHY_S
    after_s: float = AFTER_S
    rate_rps: float = RATE_RPS


def incident(fault: Mapping[str, object], within_s: float, pace: Pace) -> Callable[[Service], Awaitable[Played]]:
    """Users ask, the server has a fault, every path pages, the fault ends, and every path resolves."""

    async def play(service: Service) -> Played:
        async with service.users(pace.rate_rps):
            await asyncio.sleep(pace.healthy_s)
            began_s = time.time()
            await service.fault(fault)
            await _told(service, "firing", within_s)
            await asyncio.sleep(pace.hold_s)
            held = {path: await service.tickets_waiting(path) for path in service.pagers}
            ended_s = time.time()
            await service.fault(NO_FAULT)
            await _told(service, "resolved", RESOLVE_LIMIT_S)
            await asyncio.sleep(pace.after_s)
        return Played(f"{ended_s - began_s:.0f} s of {json.dumps(fault)}", began_s, ended_s, held)

    return play


async def _told(service: Service, status: str, limit_s: float) -> None:
    """Wait until every pager was told so of a page, or no more: what is missing is the verdict's to say."""
    for _ in range(round(limit_s / LOOK_S)):
        if all(pager.first("page", status) for pager in service.pagers.values()):
            return
        await asyncio.sleep(LOOK_S)


async def _idle(service: Service) -> Played:
    idle_s = 2.0 * SHORTEST.page[0]
    async with service.users(RATE_RPS):
        await asyncio.sleep(HEALTHY_S)
    await asyncio.sleep(idle_s)
    async with service.users(RATE_RPS):
        await asyncio.sleep(HEALTHY_S)
    return Played(f"{idle_s:.0f} s without a request, then users again")


async def _restart(service: Service) -> Played:
    async with service.users(RATE_RPS):
        await asyncio.sleep(HEALTHY_S)
        await service.restart_sidecar()
        await asyncio.sleep(HEALTHY_S)
        await service.restart_collector()
        await asyncio.sleep(HEALTHY_S + SHORTEST.page[0])
    return Played("the sidecar, then the collector, while users asked")


async def _night(service: Service) -> Played:
    """Three requests within a long window, of which the second fails; twice."""
    apart_s, failed = SHORTEST.page[0] / 3, 0
    for number in range(6):
        await service.fault(FAILING if number % 3 == 1 else NO_FAULT)
        records = (await _asked(service, 1.0, 1.0)).records
        failed += sum(record.outcome != "ok" for record in records)
        await asyncio.sleep(apart_s)
    await service.fault(NO_FAULT)
    await asyncio.sleep(AFTER_S)
    return Played(f"{failed} of 6 requests failed", fault="" if failed == 2 else "2 of 6 were to fail")


async def _storm(service: Service) -> Played:
    """One client asks again and again and fails, within one minute of the clock, of a series five minutes old."""
    async with service.users(1.0):
        await asyncio.sleep(MINUTES.page[0] / 2)
    await asyncio.sleep(62 - time.time() % 60)
    minute = time.time() // 60
    await service.fault(FAILING)
    records = (await _asked(service, 5.0, 30.0)).records
    await service.fault(NO_FAULT)
    one_minute = time.time() // 60 == minute
    failed = sum(record.outcome != "ok" for record in records)
    async with service.users(1.0):
        await asyncio.sleep(MINUTES.page[1] + AFTER_S)
    seen = f"{failed} of {len(records)} retries failed within a minute"
    return Played(seen, fault="" if one_minute and failed > 100 else "no storm of one minute")


async def _quota(service: Service) -> Played:
    async with service.users(RATE_RPS):
        await asyncio.sleep(HEALTHY_S)
    service.quota.is_used_up = True
    await _asked(service, 5.0, 30.0)
    service.quota.is_used_up = False
    async with service.users(RATE_RPS):
        await asyncio.sleep(HEALTHY_S + AFTER_S)
    refused = service.quota.refused
    return Played(f"{refused} requests refused with 429", fault="" if refused >= 150 else "150 were to be refused")


async def _zero(service: Service) -> Played:
    silent_s = SILENT_S + TROUBLES[TELEMETRY_ABSENT].for_s + AFTER_S
    async with service.users(RATE_RPS):
        await asyncio.sleep(HEALTHY_S)
    await service.scale_to_zero()
    await asyncio.sleep(silent_s)
    return Played(f"{silent_s:.0f} s without an instance")


async def _capacity_load(service: Service) -> Played:
    """`capacity load`, at more than the server can take: it spoils nobody's budget, for its class is synthetic."""
    report = service.folder / "capacity.json"
    models = tuple(word for model in MODELS for word in ("--model", model))
    size = ("--rate", "40", "--seconds", "40", "--input", "8-16", "--output", "20-30")
    flags = (*size, "--json", str(report), "--quiet")
    argv = (sys.executable, "-m", "capacity", "load", "--target", service.proxy_url, *flags, *models)
    async with service.users(RATE_RPS):
        await asyncio.sleep(HEALTHY_S)
    async with service.users(FEW_RPS):
        await service.family.run(Command("capacity-load", argv, demo_plan.environment(os.environ)), 150)
    async with service.users(RATE_RPS):
        await asyncio.sleep(AFTER_S)
    asked = json.loads(report.read_text())["records"]
    waits = sorted(one["first_token_s"] - one["written_s"] for one in asked if one["first_token_s"] is not None)
    late = sum(wait_s > TTFT_S for wait_s in waits)
    seen = f"{late} of {len(asked)} synthetic requests had no token for {TTFT_S} s"
    return Played(seen, fault="" if late > 100 else "no overload")


async def _certify(service: Service) -> Played:
    """`capacity certify` beside few users: it looks for the rate that is too much, and what that does to the engine is
    nobody's page and nobody's ticket."""
    report, promised = service.folder / "certify.json", service.folder / "certify.yaml"
    promised.write_text(COARSE_YAML)
    size = ("--workload", "8-16:20-30", "--minutes", CERTIFY_MINUTES, "--least-seconds", "10", "--tolerance", "20")
    flags = (*size, "--slo", str(promised), "--json", str(report), "--quiet")
    argv = (sys.executable, "-m", "capacity", "certify", "--target", service.proxy_url, *flags)
    async with service.users(RATE_RPS):
        await asyncio.sleep(HEALTHY_S)
    async with service.users(FEW_RPS):
        with suppress(ChildError):  # so short a search may certify nothing; what it asked is looked at below
            await service.family.run(Command("capacity-certify", argv, demo_plan.environment(os.environ)), 1200)
        await asyncio.sleep(AFTER_S)
    found = json.loads(report.read_text())
    ceiling, runs = found["ceiling_rps"] or 0, len(found["heard"]["runs"])
    seen = f"{runs} runs below the {ceiling:.3g} requests/s at which it was full: {found['verdict']}"
    return Played(seen, fault="" if ceiling and runs else "it was never full")


async def _asked(service: Service, rate_rps: float, seconds: float) -> Load:
    """So many requests at even gaps, as users send them, and what became of them."""
    chance = Random(0)
    workload = Workload(tuple((model, 1.0) for model in MODELS), Span(8, 16), Span(20, 30))
    asked = arrivals(fixed(rate_rps, seconds), workload, chance)
    return await load.run(load.Plan(target(service.proxy_url), asked, seconds, request_class=None))


HANG_S, SLOW_S = 120.0, 120.0
CASES = (
    Case(
        "slow",
        "decode steps take 25 times as long",
        200,
        incident({"slow": 25.0}, SLOW_S, Pace(45)),
        Wanted(1, SLOW_S),
    ),
    Case(
        "hang", "the engine gives no token any more", 230, incident({"hang": True}, HANG_S, Pace(75)), Wanted(1, HANG_S)
    ),
    Case("idle hour", "nobody asks for two long windows, then users are back", 190, _idle),
    Case("restart", "sidecar and collector end and start again under load", 160, _restart),
    Case("one of three at night", "three requests in a long window, one fails", 190, _night),
    Case("retry storm", "one client fails 150 times within a minute", 470, _storm, slo_yaml=slo_yaml(MINUTES)),
    Case("quota burst", "150 requests are answered 429", 120, _quota),
    Case("scale to zero", "server and sidecar are taken away", 440, _zero, slo_yaml=slo_yaml(SHORTEST, elastic=True)),
    Case("capacity load", "a synthetic load beyond what the server can take", 150, _capacity_load),
    Case("capacity certify", "the rate that the server holds is looked for, beside few users", 430, _certify),
)
PATHS = (PROMETHEUS, COLLECTOR)
