"""Prometheus and Alertmanager beside the demo: what they are told and answer, and the real ones on free ports."""

import asyncio
import json
import os
import stat
import time
from pathlib import Path

import pytest

from firsttoken.errors import ChildError
from firsttoken.http_json import ask_json
from firsttoken.processes import Family
from firsttoken.prometheus import START_TRIES, Binaries, configuration, firing, installed, start
from tests.firsttoken.json_server import serve

ROUTES = "route: {receiver: x}\nreceivers: [{name: x, webhook_configs: [{url: 'http://127.0.0.1:9/'}]}]\n"
RULES = "groups: [{name: g, rules: [{alert: A, expr: 'vector(1)', labels: {objective: ttft, burn_tier: fast}}]}]\n"


def executable(path: Path, text: str = "#!/bin/sh\nexit 3\n") -> Path:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.parametrize("name", ["alertmanager", "prometheus-alertmanager"])
def test_both_programs_are_found_under_either_name(tmp_path: Path, name: str) -> None:
    assert installed(str(tmp_path)) is None
    executable(tmp_path / "prometheus")
    assert installed(str(tmp_path)) is None
    executable(tmp_path / name)
    assert installed(str(tmp_path)) == Binaries(str(tmp_path / "prometheus"), str(tmp_path / name))


def test_the_configuration_scrapes_evaluates_and_tells() -> None:
    written = configuration("/d/rules/*.yml", alertmanager="127.0.0.1:9", targets={"sidecar": "127.0.0.1:1"})
    assert written["global"] == {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "2s"}
    assert written["rule_files"] == ["/d/rules/*.yml"]
    assert json.dumps(written["alerting"]).count("127.0.0.1:9") == 1
    assert json.dumps(written["scrape_configs"]).count("127.0.0.1:1") == 1


def test_firing_objectives_are_read_each_once() -> None:
    def alert(state: str, **labels: str) -> dict[str, object]:
        return {"state": state, "labels": labels}

    alerts = [
        alert("firing", objective="ttft", burn_tier="fast", model_name="a"),
        alert("firing", objective="ttft", burn_tier="fast", model_name="b"),
        alert("pending", objective="tpot", burn_tier="fast"),
        alert("firing", objective="answered"),
        alert("firing"),
    ]
    assert firing({"data": {"alerts": alerts}}) == ("ttft",)
    assert firing({"data": {"alerts": []}}) == firing({}) == firing(None) == ()


@pytest.mark.anyio
async def test_a_program_that_never_gets_a_port_is_named_after_a_few_tries(tmp_path: Path) -> None:
    for name in ("logs", "rules", "alertmanager", "prometheus"):
        (tmp_path / name).mkdir()
    tries = tmp_path / "tries"
    failing = executable(tmp_path / "am", f"#!/bin/sh\necho x >> {tries}\necho address in use\nexit 1\n")
    async with Family(tmp_path / "logs") as family:
        with pytest.raises(ChildError, match=r"alertmanager ended early \(exit 1\): address in use"):
            await start(family, Binaries("/none", str(failing)), tmp_path, targets={}, environ=os.environ)
    assert tries.read_text().count("x") == START_TRIES


def wait_until_it_fires(url: str) -> None:
    until = time.monotonic() + 60
    while firing(ask_json(f"{url}/api/v1/alerts")) != ("ttft",):
        assert time.monotonic() < until
        time.sleep(0.2)


@pytest.mark.tools
@pytest.mark.anyio
async def test_the_real_ones_come_up_on_free_ports_scrape_and_fire(tmp_path: Path) -> None:
    found = installed()
    if found is None:
        pytest.skip("prometheus and alertmanager are not on PATH")
    for name in ("logs", "rules", "alertmanager", "prometheus"):
        (tmp_path / name).mkdir()
    (tmp_path / "rules" / "alertmanager.yaml").write_text(ROUTES)
    (tmp_path / "rules" / "x.rules.yaml").write_text(RULES)
    with serve({"/metrics": (200, "up_and_well 7\n")}) as (url, _):
        async with Family(tmp_path / "logs") as family:
            stack = await start(family, found, tmp_path, targets={"x": url}, environ=os.environ)
            status = ask_json(f"{stack.alertmanager_url}/api/v2/status")
            assert isinstance(status, dict)
            assert "receiver: x" in status["config"]["original"]

            await family.guard(asyncio.to_thread(wait_until_it_fires, stack.prometheus_url))
