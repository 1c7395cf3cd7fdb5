"""The stage, set for real: engine, collector and sidecar come up, find each other and are gone afterwards."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from firsttoken.demo_folder import claimed
from firsttoken.demo_plan import MODEL, SLO_YAML
from firsttoken.demo_stage import Stage, set_stage, where
from firsttoken.errors import ChildError
from firsttoken.http_json import ask_json, ask_text
from firsttoken.processes import Family
from tests.firsttoken.test_tether import is_running

STAGE = Stage(Path("/d"), "http://e", "http://p", "http://a", "http://c")


@pytest.mark.anyio
async def test_every_part_comes_up_and_none_is_left(tmp_path: Path) -> None:
    with claimed(tmp_path) as folder:
        async with Family(folder / "logs") as family:
            stage = await set_stage(family, folder, pager_url="http://127.0.0.1:9/", binaries=None, environ=os.environ)
            models = ask_json(f"{stage.proxy_url}/v1/models")
            assert MODEL in str(models)
            assert ask_text(f"{stage.collector_url}/healthz")
            assert "firsttoken_" in ask_text(f"{stage.admin_url}/metrics")
            assert (folder / "slo.yaml").read_text() == SLO_YAML
            assert any((folder / "rules").iterdir())
            pids = [child.pid for child in family.children]
            assert len(pids) == 4
    assert not any(map(is_running, pids))


@pytest.mark.anyio
async def test_a_part_that_cant_come_up_is_named_with_its_last_words(tmp_path: Path) -> None:
    with claimed(tmp_path) as folder:
        (folder / "firsttoken.db").mkdir()
        async with Family(folder / "logs") as family:
            with pytest.raises(
                ChildError, match=r"collector ended early \(exit 2\): firsttoken collector: .*firsttoken\.db"
            ):
                await set_stage(family, folder, pager_url="http://127.0.0.1:9/", binaries=None, environ=os.environ)


def test_urls_and_paths_stand_one_a_line() -> None:
    lines = list(where(STAGE, lambda name: f".demo/{name}"))
    assert lines[0] == "status page: http://c/"
    assert "database: .demo/firsttoken.db" in lines
    assert "sidecar metrics: http://a/metrics" in lines
    assert not any("prometheus" in line for line in lines)


def test_prometheus_is_named_where_it_runs() -> None:
    lines = list(where(replace(STAGE, prometheus_url="http://m", alertmanager_url="http://n"), str))
    assert "prometheus: http://m/alerts" in lines
    assert "alertmanager: http://n/" in lines
