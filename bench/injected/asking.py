"""Users of a service: they ask through its sidecar by their own clock, whatever becomes of what they asked."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random

from capacity import load
from capacity.client import target
from capacity.record import Load
from capacity.schedule import Span, Workload, arrivals, poisson
from firsttoken.demo_plan import MODEL
from injected.incidents import Users

OUTPUT = Span(20, 30)


@asynccontextmanager
async def asking(
    proxy_url: str, users: Users, *, seed: int, seconds: float, models: tuple[str, ...] = (MODEL,)
) -> AsyncIterator[None]:
    """Users ask for the models alike, for so long, or until the block ends."""
    chance, stop = Random(seed), asyncio.Event()
    times = poisson(users.rate_rps, seconds, chance)
    workload = Workload(tuple((model, 1.0) for model in models), Span(*users.words), OUTPUT)
    asked = arrivals(times, workload, chance)
    plan = load.Plan(target(proxy_url), asked, seconds, request_class=None, seed=seed)
    running: asyncio.Task[Load] = asyncio.create_task(load.run(plan, stop=stop))
    try:
        yield
    finally:
        stop.set()
        await running
