"""Setting the demo's stage: every process but the users, started in the order they need each other."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from firsttoken import demo_plan, prometheus
from firsttoken.http_json import ask_json
from firsttoken.processes import Family

RULES_TIMEOUT_S = 60.0
WARM_UPS = 4
WARM_UP_TIMEOUT_S = 60.0
URL = r"(http://\S+)$"


@dataclass(frozen=True, slots=True)
class Stage:
    """Where everything answers; the last two are None where no Prometheus runs."""

    folder: Path
    server_url: str
    proxy_url: str
    admin_url: str
    collector_url: str
    prometheus_url: str | None = None
    alertmanager_url: str | None = None


async def set_stage(
    family: Family, folder: Path, *, pager_url: str, binaries: prometheus.Binaries | None, environ: Mapping[str, str]
) -> Stage:
    """Write the contract and start the processes. Raises ChildError when one does not come up.

    Exactly one evaluator notifies: Prometheus where it is installed, else the collector.
    """
    (folder / "slo.yaml").write_text(demo_plan.SLO_YAML)
    server, collector, _ = await asyncio.gather(
        family.start(demo_plan.server(environ)),
        family.start(demo_plan.collector(folder, environ, None if binaries else pager_url)),
        family.run(demo_plan.rules(folder, environ, webhook=pager_url), RULES_TIMEOUT_S),
    )
    engine_said, collector_said = await asyncio.gather(
        server.says(rf"^listening on {URL}"), collector.says(rf"^collector: {URL}")
    )
    server_url, collector_url = engine_said[1], collector_said[1]
    sidecar = await family.start(demo_plan.sidecar(folder, environ, server_url=server_url, collector_url=collector_url))
    await asyncio.gather(*(asyncio.to_thread(_warm_up, server_url) for _ in range(WARM_UPS)))
    proxy_url = (await sidecar.says(rf"^proxy: {URL}"))[1]
    admin_url = (await sidecar.says(rf"^admin: {URL}"))[1]
    stage = Stage(folder, server_url, proxy_url, admin_url, collector_url)
    if binaries is None:
        return stage
    targets = {"sidecar": admin_url, "collector": collector_url}
    stack = await prometheus.start(family, binaries, folder, targets=targets, environ=environ)
    return replace(stage, prometheus_url=stack.prometheus_url, alertmanager_url=stack.alertmanager_url)


def _warm_up(server_url: str) -> None:
    """Ask the engine once past the sidecar: its first steps are slow, and no fault of the story's."""
    question = {"model": demo_plan.MODEL, "prompt": "warm up", "max_tokens": 30}
    ask_json(f"{server_url}/v1/completions", body=question, timeout_s=WARM_UP_TIMEOUT_S)


def where(stage: Stage, shown: Callable[[str], str]) -> Iterator[str]:
    """URLs and paths, one a line; `shown` gives the text of a name inside the folder."""
    yield f"status page: {stage.collector_url}/"
    yield f"collector metrics: {stage.collector_url}/metrics"
    yield f"sidecar metrics: {stage.admin_url}/metrics"
    yield f"sidecar proxy: {stage.proxy_url}/v1"
    if stage.prometheus_url is not None:
        yield f"prometheus: {stage.prometheus_url}/alerts"
        yield f"alertmanager: {stage.alertmanager_url}/"
    yield f"database: {shown('firsttoken.db')}"
    yield f"slo: {shown('slo.yaml')}"
    yield f"rules: {shown('rules')}"
    yield f"logs: {shown('logs')}"
