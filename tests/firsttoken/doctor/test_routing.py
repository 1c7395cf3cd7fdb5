"""To whom an alert goes, against what amtool says of the same configuration."""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from alerts.routes import Routing, alertmanager
from firsttoken.doctor.routing import Arrival, arrivals, matches, tells_somebody
from tests.firsttoken.doctor.healthy import SPEC

CONFIG = """
route:
  receiver: root
  group_by: [alertname]
  routes:
    - {receiver: audit, continue: true, matchers: ['severity=~"critical|warning"']}
    - receiver: team
      matchers: ['notify="page"', 'model_name!="other"']
      group_by: [service_name]
      routes:
        - {receiver: night, match: {shift: night}}
        - {match_re: {shift: 'd.*'}}
    - {receiver: quoted, matchers: ['a = "x\\"y"', 'b != z']}
    - {receiver: negated, matchers: ['c!~"d+"', 'c!=""']}
receivers:
  - {name: root}
  - {name: audit, webhook_configs: [{url: 'http://a/'}]}
  - {name: team, webhook_configs: [{url: 'http://a/'}]}
  - {name: night, webhook_configs: []}
  - {name: quoted}
  - {name: negated}
"""
ALERTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "nobody's": ({}, ("root",)),
    "a page": ({"notify": "page"}, ("team",)),
    "a page of another model": ({"notify": "page", "model_name": "other"}, ("root",)),
    "a critical page": ({"notify": "page", "severity": "critical"}, ("audit", "team")),
    "a severity that only begins so": ({"severity": "critically"}, ("root",)),
    "a page at night": ({"notify": "page", "shift": "night"}, ("night",)),
    "a page by day, whose route names no receiver": ({"notify": "page", "shift": "day"}, ("team",)),
    "a quote in a value": ({"a": 'x"y'}, ("quoted",)),
    "a value that is not that": ({"c": "e"}, ("negated",)),
    "a value that is": ({"c": "dd"}, ("root",)),
}


@pytest.mark.parametrize(("labels", "receivers"), ALERTS.values(), ids=ALERTS.keys())
def test_an_alert_goes_where_alertmanager_sends_it(labels: dict[str, str], receivers: tuple[str, ...]) -> None:
    assert tuple(arrival.receiver for arrival in arrivals(yaml.safe_load(CONFIG), labels)) == receivers


@pytest.mark.tools
def test_amtool_agrees(tmp_path: Path) -> None:
    amtool = shutil.which("amtool")
    if amtool is None:
        pytest.skip("amtool is not on PATH")
    path = tmp_path / "alertmanager.yaml"
    path.write_text(CONFIG)
    for labels, receivers in ALERTS.values():
        written = [f"{name}={value}" for name, value in labels.items() if '"' not in value]
        if len(written) == len(labels):
            wanted = f"--verify.receivers={','.join(receivers)}"
            command = [amtool, "config", "routes", "test", f"--config.file={path}", wanted, *written]
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, (labels, done.stdout, done.stderr)


def test_grouping_is_that_of_the_nearest_route() -> None:
    config = yaml.safe_load(CONFIG)
    assert arrivals(config, {"notify": "page", "shift": "day"}) == (Arrival("team", ("service_name",)),)
    assert arrivals(config, {}) == (Arrival("root", ("alertname",)),)


def test_a_receiver_tells_somebody_when_it_has_a_way_to() -> None:
    config = yaml.safe_load(CONFIG)
    told = {name: tells_somebody(config, name) for name in ("root", "audit", "team", "night", "gone")}
    assert told == {"root": False, "audit": True, "team": True, "night": False, "gone": False}


def test_our_own_routes_lead_where_they_should() -> None:
    config = alertmanager((SPEC,), Routing())
    page = {"notify": "page", "service_name": "chat", "model_name": "*"}
    assert [one.receiver for one in arrivals(config, page)] == ["firsttoken-page"]
    assert [one.receiver for one in arrivals(config, {"notify": "ticket"})] == ["firsttoken-ticket"]
    assert [one.receiver for one in arrivals(config, page | {"model_name": "other"})] == ["firsttoken-nobody"]


@pytest.mark.parametrize("matcher", ["", "x", "=y", "9a=b", 'a=~"("'])
def test_what_is_no_matcher_matches_nothing(matcher: str) -> None:
    assert not matches(matcher, {"a": "b"})
    assert arrivals({}, {"a": "b"}) == (Arrival("", None),)
