"""The story told against real sockets: a scripted engine, sidecar and collector, and a pager that really rings."""

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from firsttoken.demo_plan import INCIDENTS, MODEL, NO_FAULT, PERIOD_S, SERVICE, Plan
from firsttoken.demo_stage import Stage
from firsttoken.demo_story import Ending, Story, gauge, measured
from firsttoken.demo_view import Frame
from firsttoken.http_json import ask_text
from firsttoken.pager import Pager
from firsttoken.status import STATUS_PATH
from slo.signals import KV_OCCUPANCY
from tests.firsttoken.json_server import serve
from tests.firsttoken.status_sample import objective, status

METRICS = f'{KV_OCCUPANCY.prometheus}{{service_name="demo",model_name="{MODEL}"}} 0.25\n'
SHORT = Plan(30, INCIDENTS["slow"], healthy_s=0.1, hold_s=0.1, page_limit_s=20.0, resolve_limit_s=20.0)
QUIET = Plan(30, None, healthy_s=0.1, hold_s=0.0)
ANSWERS = {
    "/admin/faults": (200, "{}"),
    "/metrics": (200, METRICS),
    STATUS_PATH: (200, json.dumps(status(objective()))),
    "/api/v1/alerts": (
        200,
        '{"data": {"alerts": [{"state": "firing", "labels": {"objective": "ttft", "burn_tier": "fast"}}]}}',
    ),
}


@asynccontextmanager
async def stage(tmp_path: Path) -> AsyncIterator[tuple[Stage, Pager, list[tuple[str, object]]]]:
    with serve(ANSWERS) as (url, posted):
        async with Pager(time.time) as pager:
            yield Stage(tmp_path, url, url, url, url, url), pager, posted


def ring(pager: Pager, status: str) -> str:
    labels = {"alertname": "LLMTTFTBudgetBurn", "notify": "page", "objective": "ttft", "burn_tier": "fast"}
    return ask_text(pager.url, body={"status": status, "alerts": [{"status": status, "labels": labels}]})


async def until(posted: list[tuple[str, object]], count: int) -> None:
    async with asyncio.timeout(30):
        while len(posted) < count:  # noqa: ASYNC110  the list fills in another thread
            await asyncio.sleep(0.01)


async def tell(plan: Plan, set_stage: Stage, pager: Pager) -> Ending:
    async with asyncio.timeout(60):
        return await Story(plan, set_stage, pager, now_s=time.time).tell()


@pytest.mark.anyio
async def test_a_page_that_rings_and_resolves_is_the_story_as_it_should_be(tmp_path: Path) -> None:
    async with stage(tmp_path) as (there, pager, posted):
        telling = asyncio.create_task(tell(SHORT, there, pager))
        await until(posted, 1)
        await asyncio.to_thread(ring, pager, "firing")
        await until(posted, 2)
        assert not telling.done()
        await asyncio.to_thread(ring, pager, "resolved")
        ending = await telling
    assert ending.is_fine
    assert [line.split(" at ")[0] for line in ending.lines] == [
        "incident slow began",
        "page fired",
        "incident ended",
        "page resolved",
    ]
    assert "LLMTTFTBudgetBurn ttft/fast" in ending.lines[1]
    assert posted == [("/admin/faults", {"slow": 6.0}), ("/admin/faults", dict(NO_FAULT))]


@pytest.mark.anyio
async def test_a_page_that_never_rings_is_said(tmp_path: Path) -> None:
    async with stage(tmp_path) as (there, pager, _):
        ending = await tell(Plan(30, INCIDENTS["hang"], 0.1, 0.0, page_limit_s=0.2), there, pager)
    assert not ending.is_fine
    assert ending.lines[-1].startswith("NO PAGE within 0 s")


@pytest.mark.anyio
async def test_a_page_that_never_resolves_is_said(tmp_path: Path) -> None:
    async with stage(tmp_path) as (there, pager, posted):
        telling = asyncio.create_task(tell(Plan(30, INCIDENTS["slow"], 0.1, 0.0, resolve_limit_s=0.2), there, pager))
        await until(posted, 1)
        await asyncio.to_thread(ring, pager, "firing")
        ending = await telling
    assert not ending.is_fine
    assert ending.lines[-1].startswith("THE PAGE DID NOT RESOLVE")


@pytest.mark.anyio
async def test_without_an_incident_no_page_is_as_it_should_be(tmp_path: Path) -> None:
    async with stage(tmp_path) as (there, pager, posted):
        ending = await tell(QUIET, there, pager)
    assert ending.is_fine
    assert ending.lines == ("no page, as it should be: nothing was wrong",)
    assert posted == []


@pytest.mark.anyio
@pytest.mark.parametrize("plan", [QUIET, SHORT])
async def test_a_page_for_nothing_is_a_failure(plan: Plan, tmp_path: Path) -> None:
    async with stage(tmp_path) as (there, pager, posted):
        await asyncio.to_thread(ring, pager, "firing")
        ending = await tell(plan, there, pager)
    assert not ending.is_fine
    assert "PAGED WHILE NOTHING WAS WRONG" in ending.lines[0]
    assert posted == []


@pytest.mark.anyio
async def test_a_frame_holds_what_each_part_answers(tmp_path: Path) -> None:
    shown: list[Frame] = []
    async with stage(tmp_path) as (there, pager, _):
        await asyncio.to_thread(ring, pager, "firing")
        watching = asyncio.create_task(Story(QUIET, there, pager, now_s=time.time).watch(shown.append))
        async with asyncio.timeout(30):
            while len(shown) < 2:  # noqa: ASYNC110  the frames come at their own pace
                await asyncio.sleep(0.05)
        watching.cancel()
    frame = shown[0]
    assert (frame.kv_used, frame.prometheus) == (0.25, ("ttft",))
    assert [row.name for row in frame.objectives] == ["ttft"]
    assert [told.kind for _, told in frame.notifications] == ["page"]


@pytest.mark.anyio
async def test_a_frame_of_parts_that_do_not_answer_is_empty_and_no_fault(tmp_path: Path) -> None:
    gone = "http://127.0.0.1:1"
    async with Pager(time.time) as pager:
        story = Story(QUIET, Stage(tmp_path, gone, gone, gone, gone), pager, now_s=time.time)
        frame = await asyncio.to_thread(story.frame)
    assert (frame.kv_used, frame.prometheus, frame.objectives) == (None, None, ())


PAGES = {
    "the model's own": ('x{model_name="a"} 1\nx{model_name="m"} 0.5\n', 0.5),
    "one without labels": ("x 0.5\n", 0.5),
    "another metric whose name begins alike": ('x_total{model_name="m"} 1\n', None),
    "another model's": ('x{model_name="a"} 1\n', None),
    "no number": ('x{model_name="m"} ?\n', None),
    "an empty page": ("", None),
}


@pytest.mark.parametrize(("page", "value"), PAGES.values(), ids=PAGES.keys())
def test_a_gauge_is_read_off_a_metrics_page(page: str, value: float | None) -> None:
    assert gauge(page, "x", model="m") == value


def test_a_database_that_cant_be_read_measures_nothing(tmp_path: Path) -> None:
    assert measured(tmp_path) is None
    with sqlite3.connect(tmp_path / "firsttoken.db") as connection:
        connection.execute("CREATE TABLE x (y)")
    connection.close()
    assert measured(tmp_path) is None


def test_a_database_that_can_is_measured(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "firsttoken.db") as connection:
        connection.execute(
            "CREATE TABLE percentile (at_s, service, model, signal, source, window_s, count, censored, p95)"
        )
        row = (1000, SERVICE, MODEL, "ttft", "proxy", PERIOD_S, 3, 0, 0.1)
        connection.execute("INSERT INTO percentile VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()
    found = measured(tmp_path)
    assert found is not None
    assert (found.count, found.p95_s) == (3, 0.1)
