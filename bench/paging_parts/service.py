"""A service that is watched twice over: a demo server with three models, a sidecar, a collector that notifies one
pager, and Prometheus with Alertmanager that notify another. Neither path knows of the other; both see the same traffic.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from injected.asking import asking
from injected.incidents import Users

from firsttoken import demo_plan, prometheus
from firsttoken.demo_stage import RULES_TIMEOUT_S, URL
from firsttoken.http_json import ask_json
from firsttoken.json_fields import object_at, objects_at
from firsttoken.pager import Pager
from firsttoken.processes import Child, Command, Family
from paging_parts.quota import Quota
from paging_parts.spec import MODELS
from slo.burn import Tier, tiers
from slo.objective import Objective, Spec, load
from slo.promql import TIER_LABEL, burn_rate, of_objective

PROMETHEUS, COLLECTOR = "Prometheus", "collector"
STEP_MS = 40
FOLDERS = ("rules", "logs", "prometheus", "alertmanager")
ASK_TIMEOUT_S = 60.0


@dataclass(slots=True)
class Service:
    """Where everything answers, and the pager of each path."""

    folder: Path
    family: Family
    pagers: Mapping[str, Pager]
    server: Child
    collector: Child
    sidecar: Child
    server_url: str
    collector_url: str
    quota: Quota
    proxy_url: str = ""
    admin_url: str = ""
    prometheus_url: str = ""

    async def fault(self, fault: Mapping[str, object]) -> None:
        """Set faults of the server."""
        await asyncio.to_thread(ask_json, f"{self.server_url}/admin/faults", body=fault)

    def users(self, rate_rps: float, seconds: float = 900.0) -> AbstractAsyncContextManager[None]:
        """Users ask for all three models until the block ends."""
        return asking(self.proxy_url, Users(rate_rps), seed=int(rate_rps * 10), seconds=seconds, models=MODELS)

    async def restart_sidecar(self) -> None:
        """End it as a deployment does, and start it again where it was."""
        await self.family.dismiss(self.sidecar)
        command = _on(_sidecar(self), self.proxy_url, self.admin_url)
        self.sidecar = await self.family.start(command)
        await self.sidecar.says(rf"^proxy: {URL}")

    async def restart_collector(self) -> None:
        """The same of the collector."""
        await self.family.dismiss(self.collector)
        command = _on(_collector(self.folder, self.pagers), self.collector_url)
        self.collector = await self.family.start(command)
        await self.collector.says(rf"^collector: {URL}")

    async def scale_to_zero(self) -> None:
        """Take the server and its sidecar away."""
        await self.family.dismiss(self.sidecar)
        await self.family.dismiss(self.server)

    async def tickets_waiting(self, path: str) -> int:
        """How many burns of tickets that path holds back now for a page: both their windows burn."""
        if path == COLLECTOR:
            alerts = objects_at(await asyncio.to_thread(ask_json, f"{self.collector_url}/api/v1/alerts"), "alerts")
            waiting = (object_at(one, "labels") for one in alerts if one.get("state") == "pending")
            return sum(labels.get("notify") == "ticket" and bool(labels.get(TIER_LABEL)) for labels in waiting)
        (spec,) = load([self.folder / "slo.yaml"])
        found = await asyncio.gather(
            *(self._waiting(spec, one, tier) for one in spec.objectives for tier in tiers(one))
        )
        return sum(found)

    async def _waiting(self, spec: Spec, objective: Objective, tier: Tier) -> int:
        """Of how many models a ticket's windows both burn, by Prometheus; of a page none."""
        if tier.notify == "page":
            return 0
        of = of_objective(spec, objective)
        long, short = (f"{burn_rate(window_s)}{of} > {tier.factor}" for window_s in (tier.long_s, tier.short_s))
        query = urlencode({"query": f"{long} and {short}"})
        answer = await asyncio.to_thread(ask_json, f"{self.prometheus_url}/api/v1/query?{query}")
        return len(list(objects_at(object_at(answer, "data"), "result")))


@asynccontextmanager
async def service(folder: Path, slo_yaml: str, paths: tuple[str, ...]) -> AsyncIterator[Service]:
    """A whole service in a folder of its own, whose pagers are those of `paths`; all of it is gone at the end."""
    await asyncio.to_thread(_prepare, folder, slo_yaml)
    async with AsyncExitStack() as exits:
        pagers = {path: await exits.enter_async_context(Pager(time.time)) for path in paths}
        family = await exits.enter_async_context(Family(folder / "logs"))
        server, collector = await asyncio.gather(family.start(_server()), family.start(_collector(folder, pagers)))
        server_url = (await server.says(rf"^listening on {URL}"))[1]
        collector_url = (await collector.says(rf"^collector: {URL}"))[1]
        quota = Quota(urlsplit(server_url).port or 0)
        await quota.open()
        exits.push_async_callback(quota.close)
        one = Service(folder, family, pagers, server, collector, server, server_url, collector_url, quota)
        one.sidecar = await family.start(_sidecar(one))
        one.proxy_url = (await one.sidecar.says(rf"^proxy: {URL}"))[1]
        one.admin_url = (await one.sidecar.says(rf"^admin: {URL}"))[1]
        for _ in range(4):
            await asyncio.to_thread(_warm_up, server_url)
        if PROMETHEUS in pagers:
            await _prometheus(one)
        yield one


async def _prometheus(one: Service) -> None:
    found = prometheus.installed()
    assert found is not None  # whoever chose the path looked
    build = demo_plan.rules(one.folder, os.environ, webhook=one.pagers[PROMETHEUS].url)
    await one.family.run(build, RULES_TIMEOUT_S)
    targets = {"sidecar": one.admin_url, "collector": one.collector_url}
    stack = await prometheus.start(one.family, found, one.folder, targets=targets, environ=os.environ)
    one.prometheus_url = stack.prometheus_url


def _prepare(folder: Path, slo_yaml: str) -> None:
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
    (folder / "slo.yaml").write_text(slo_yaml)


def _warm_up(server_url: str) -> None:
    question = {"model": MODELS[0], "prompt": "warm up " * 20, "max_tokens": 20}
    ask_json(f"{server_url}/v1/completions", body=question, timeout_s=ASK_TIMEOUT_S)


def _server() -> Command:
    """The demo's, with two more models and longer steps: a busy machine changes nothing."""
    command = demo_plan.server(os.environ)
    more = tuple(word for model in MODELS[1:] for word in ("--model", model))
    return replace(command, argv=(*command.argv, "--step-ms", str(STEP_MS), *more))


def _collector(folder: Path, pagers: Mapping[str, Pager]) -> Command:
    return demo_plan.collector(folder, os.environ, pagers[COLLECTOR].url if COLLECTOR in pagers else None)


def _sidecar(one: Service) -> Command:
    upstream = f"http://127.0.0.1:{one.quota.port}"
    return demo_plan.sidecar(one.folder, os.environ, server_url=upstream, collector_url=one.collector_url)


def _on(command: Command, *urls: str) -> Command:
    """The command, but on the addresses that it took at its first start."""
    taken = iter(urlsplit(url).netloc for url in urls)
    return replace(command, argv=tuple(next(taken) if word == demo_plan.ANY_PORT else word for word in command.argv))
