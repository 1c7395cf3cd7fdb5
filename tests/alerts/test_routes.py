"""The Alertmanager configuration, by amtool and by a real Alertmanager with a webhook behind it."""

import http.server
import json
import re
import shutil
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Queue

import pytest
import yaml

from alerts.document import document
from alerts.receiver import Receiver, Smtp, email, opsgenie, pagerduty, slack, webhook
from alerts.routes import Routing, alertmanager, route_tests
from alerts.rules import Target, service_groups
from slo.objective import parse
from tests.alerts.support import spec, tool
from tests.alerts.test_rules import FIVE

WAIT_S = 30
PAGE = {"service_name": "chat", "notify": "page", "severity": "critical"}
FAST_TTFT = PAGE | {"alertname": "LLMTTFTBudgetBurn", "objective": "ttft", "burn_tier": "fast", "model_name": "m1"}
SLOW_TTFT = FAST_TTFT | {"notify": "ticket", "severity": "warning", "burn_tier": "slow"}

Notices = Queue[tuple[str, dict[str, object]]]
Post = Callable[..., None]


def config(routing: Routing | None = None) -> dict[str, object]:
    return alertmanager(parse(FIVE), routing or Routing())


@pytest.mark.tools
@pytest.mark.parametrize(
    "receiver",
    [
        None,
        webhook("http://127.0.0.1:1/x"),
        pagerduty("/run/key"),
        opsgenie("/run/{owner}"),
        slack("/run/url"),
        email("{owner}@example.com"),
    ],
    ids=lambda r: r and r.kind,
)
def test_amtool_accepts_it(tmp_path: Path, receiver: Receiver | None) -> None:
    smtp = Smtp("127.0.0.1:1", "firsttoken@example.com", "user", "/run/password")
    routing = Routing(receiver, receiver, receiver, smtp) if receiver else Routing()
    (tmp_path / "am.yaml").write_text(document(config(routing), parse(FIVE)))
    result = subprocess.run(
        [tool("amtool"), "check-config", tmp_path / "am.yaml"], capture_output=True, text=True, timeout=60
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.tools
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"notify": "page"}, "firsttoken-page"),
        ({"notify": "page", "model_name": "other"}, "firsttoken-nobody"),
        ({"notify": "ticket", "model_name": "other"}, "firsttoken-ticket"),
        ({"notify": "none"}, "firsttoken-nobody"),
        ({"severity": "critical"}, "firsttoken-nobody"),
    ],
)
def test_alerts_go_where_notify_says(tmp_path: Path, labels: dict[str, str], receiver: str) -> None:
    (tmp_path / "am.yaml").write_text(document(config(), parse(FIVE)))
    assert routed(tmp_path, labels) == receiver


def routed(folder: Path, labels: dict[str, str]) -> str:
    """The receiver that amtool finds for an alert of these labels."""
    command = [tool("amtool"), "config", "routes", "test", f"--config.file={folder / 'am.yaml'}"]
    written = [f"{key}={value}" for key, value in labels.items()]
    result = subprocess.run([*command, *written], capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_pages_are_grouped_by_service_alone_and_tickets_by_objective() -> None:
    page, ticket = config()["route"]["routes"]  # type: ignore[index]
    assert page["group_by"] == ["environment", "service_name"]
    assert ticket["group_by"] == ["environment", "service_name", "objective"]
    (of_no_objective,) = ticket["routes"]
    assert of_no_objective["matchers"] == ['objective=""']
    assert of_no_objective["group_by"] == ["alertname", "environment", "service_name"]


def test_waits_are_those_of_the_flags() -> None:
    routes = config(Routing(group_wait_s=1, group_interval_s=5))["route"]["routes"]  # type: ignore[index]
    assert {(route["group_wait"], route["group_interval"]) for route in routes} == {("1s", "5s")}


def test_no_secret_stands_in_it_and_resolutions_are_sent() -> None:
    receivers = [{k: v for k, v in r.items() if k != "name"} for r in config()["receivers"]]  # type: ignore[attr-defined]
    fields = [found for receiver in receivers for kind in receiver.values() for found in kind]
    assert len(fields) == 2
    assert all(found["send_resolved"] for found in fields)
    assert {name for found in fields for name in found if "key" in name or "url" in name} == {
        "routing_key_file",
        "api_url_file",
    }


OWNED = """
service: chat
objectives:
  - {name: ttft, signal: ttft, percentile: 95, threshold: 500ms, owner: serving}
  - {name: answered, signal: availability, target: 99.9%, owner: platform}
  - {name: e2e, signal: e2e, percentile: 90, threshold: 30s}
"""
BY_OWNER = Routing(pagerduty("/run/{owner}/key"), slack("/run/slack"), webhook("http://127.0.0.1:1/alive"))


@pytest.mark.tools
@pytest.mark.parametrize(
    ("labels", "receiver"),
    [
        ({"notify": "page", "owner": "serving"}, "firsttoken-page-serving"),
        ({"notify": "page", "owner": "platform"}, "firsttoken-page-platform"),
        ({"notify": "page"}, "firsttoken-page"),
        ({"notify": "page", "owner": "stranger"}, "firsttoken-page"),
        ({"notify": "page", "owner": "serving", "model_name": "other"}, "firsttoken-nobody"),
        ({"notify": "ticket", "owner": "serving"}, "firsttoken-ticket"),
        ({"notify": "none", "alertname": "LLMWatchdog"}, "firsttoken-watchdog"),
    ],
)
def test_each_owner_has_a_receiver_of_its_own_where_they_differ(
    tmp_path: Path, labels: dict[str, str], receiver: str
) -> None:
    (tmp_path / "am.yaml").write_text(document(alertmanager(parse(OWNED), BY_OWNER), parse(OWNED)))
    assert routed(tmp_path, labels) == receiver


@pytest.mark.tools
@pytest.mark.parametrize("objective", ["ttft", ""])
def test_tickets_go_to_their_owner_with_an_objective_or_without(tmp_path: Path, objective: str) -> None:
    routing = Routing(ticket=slack("/run/{owner}/url"))
    (tmp_path / "am.yaml").write_text(document(alertmanager(parse(OWNED), routing), parse(OWNED)))
    labels = {"notify": "ticket", **({"objective": objective} if objective else {})}
    assert routed(tmp_path, labels | {"owner": "serving"}) == "firsttoken-ticket-serving"
    assert routed(tmp_path, labels) == "firsttoken-ticket"


def test_the_secret_of_each_owner_is_in_a_file_of_its_own() -> None:
    found = {r["name"]: r for r in alertmanager(parse(OWNED), BY_OWNER)["receivers"]}  # type: ignore[attr-defined]
    files = {name: r["pagerduty_configs"][0]["routing_key_file"] for name, r in found.items() if "page" in name}
    assert files == {
        "firsttoken-page": "/run/unowned/key",
        "firsttoken-page-platform": "/run/platform/key",
        "firsttoken-page-serving": "/run/serving/key",
    }


@pytest.mark.tools
@pytest.mark.parametrize("routing", [Routing(), BY_OWNER], ids=["one for all", "by owner, with a watchdog"])
def test_the_tests_of_the_routes_hold(tmp_path: Path, routing: Routing) -> None:
    (found,) = parse(OWNED)
    (tmp_path / "am.yaml").write_text(document(alertmanager((found,), routing), (found,)))
    cases = route_tests((found,), service_groups(found, Target()), routing)
    told = {(case["labels"]["notify"], case["labels"].get("owner")) for case in cases[:-1]}  # type: ignore[index,attr-defined]
    assert told == {(notify, owner) for notify in ("page", "ticket") for owner in (None, "platform", "serving")}
    for case in cases:
        assert routed(tmp_path, case["labels"]) == case["receiver"]  # type: ignore[arg-type]


def test_tiers_are_ordered_for_each_set_of_them() -> None:
    odd = parse("""
service: chat
objectives:
  - {name: a, signal: ttft, target: 95%, threshold: 1s}
  - {name: b.c, signal: ttft, target: 95%, threshold: 1s,
     alerts: {tiers: [{name: fast, budget: 3%, long: 6h}, {name: medium, budget: 1%, long: 1h}]}}
""")
    rules = alertmanager(odd, Routing())["inhibit_rules"]
    by_tier = [rule for rule in rules if any('burn_tier="' in m for m in rule["source_matchers"])]  # type: ignore[attr-defined]
    shown = [(*r["source_matchers"][:2], r["target_matchers"][1], r["source_matchers"][3]) for r in by_tier]
    assert shown == [
        ('notify="page"', 'burn_tier="fast"', 'burn_tier=~"medium"', 'objective=~"a"'),
        ('notify="page"', 'burn_tier="medium"', 'burn_tier=~"fast"', 'objective=~"b\\\\.c"'),
        ('notify="ticket"', 'burn_tier="slow"', 'burn_tier=~"long"', 'objective=~"a"'),
    ]
    assert [r["target_matchers"][0] for r in by_tier] == ['notify="page"', 'notify="page"', 'notify="ticket"']


def test_every_inhibition_asks_for_each_label_that_must_be_equal_but_the_environment() -> None:
    for rule in config()["inhibit_rules"]:  # type: ignore[attr-defined]
        for side in ("source_matchers", "target_matchers"):
            asked = {re.split(r"=|!=", matcher)[0] for matcher in rule[side]}
            assert set(rule["equal"]) - {"environment"} <= asked


@pytest.fixture
def notices() -> Iterator[tuple[str, Notices]]:
    """A webhook on loopback: its URL, and what came, as (path, body)."""
    came: Notices = Queue()

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            came.put((self.path, json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", came
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def post(tmp_path: Path, notices: tuple[str, Notices]) -> Iterator[Post]:
    """A real Alertmanager with the generated configuration; call it with the alerts to post."""
    program = shutil.which("alertmanager") or tool("prometheus-alertmanager")
    url, _ = notices
    routing = Routing(webhook(f"{url}/page"), webhook(f"{url}/ticket"), group_wait_s=1, group_interval_s=1)
    (tmp_path / "am.yaml").write_text(document(config(routing), parse(FIVE)))
    command = [program, f"--config.file={tmp_path / 'am.yaml'}", f"--storage.path={tmp_path / 'data'}"]
    command += ["--web.listen-address=127.0.0.1:0", "--cluster.listen-address="]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
        try:
            yield _poster(_address(tmp_path / "log", process))
        finally:
            process.terminate()
            process.wait(timeout=WAIT_S)


def _address(log: Path, process: subprocess.Popen[bytes]) -> str:
    """Where our own Alertmanager listens, from its log."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := re.search(r"Listening on\"? address=(127\.0\.0\.1:\d+)", log.read_text()):
            return found[1]
        assert process.poll() is None, log.read_text()
        time.sleep(0.05)
    raise AssertionError(log.read_text())


def _poster(address: str) -> Post:
    def post(*alerts: dict[str, str]) -> None:
        body = json.dumps([{"labels": labels, "annotations": {"summary": "s"}} for labels in alerts]).encode()
        request = urllib.request.Request(f"http://{address}/api/v2/alerts", body, {"content-type": "application/json"})
        urllib.request.urlopen(request, timeout=WAIT_S).close()

    return post


Told = dict[str, set[tuple[str, str]]]


def told(came: Notices, expected: Told) -> Told:
    """What was notified, by path, as (name, tier): all that is expected, however long it takes, and what else comes
    within two seconds after it."""
    found: Told = {}
    deadline = time.monotonic() + WAIT_S
    while (left := deadline - time.monotonic()) > 0:
        try:
            path, body = came.get(timeout=left)
        except Empty:
            break
        for alert in body["alerts"]:  # type: ignore[attr-defined]
            found.setdefault(path, set()).add((alert["labels"]["alertname"], alert["labels"].get("burn_tier", "")))
        if all(names <= found.get(path, set()) for path, names in expected.items()):
            deadline = min(deadline, time.monotonic() + 2)
    return found


@pytest.mark.tools
def test_d13_a_page_holds_back_its_own_tickets_and_nobody_elses(notices: tuple[str, Notices], post: Post) -> None:
    _, came = notices
    bare_page, bare_ticket = {"alertname": "P0", "notify": "page"}, {"alertname": "T3", "notify": "ticket"}
    post(
        FAST_TTFT,
        FAST_TTFT | {"burn_tier": "medium"},
        FAST_TTFT | {"burn_tier": "medium", "model_name": "m2"},
        SLOW_TTFT,
        SLOW_TTFT | {"model_name": "*"},
        SLOW_TTFT | {"alertname": "LLMTPOTBudgetBurn", "objective": "tpot"},
        SLOW_TTFT | {"alertname": "T5", "service_name": "search"},
        bare_page,
        bare_ticket,
    )
    expected = {
        "/page": {("LLMTTFTBudgetBurn", "fast"), ("LLMTTFTBudgetBurn", "medium"), ("P0", "")},
        "/ticket": {("LLMTPOTBudgetBurn", "slow"), ("T5", "slow"), ("T3", "")},
    }
    assert told(came, expected) == expected


@pytest.mark.tools
def test_absent_telemetry_holds_back_the_burns_of_its_service(notices: tuple[str, Notices], post: Post) -> None:
    _, came = notices
    absent = PAGE | {"alertname": "LLMTelemetryAbsent"}
    stalled = PAGE | {"alertname": "LLMEngineStalled", "instance": "a"}
    post(absent, stalled, FAST_TTFT, SLOW_TTFT, FAST_TTFT | {"service_name": "search"})
    expected = {"/page": {("LLMTelemetryAbsent", ""), ("LLMEngineStalled", ""), ("LLMTTFTBudgetBurn", "fast")}}
    assert told(came, expected) == expected


@pytest.mark.tools
def test_a_page_holds_back_what_is_told_of_the_service_and_a_ticket_its_slower_tiers(
    notices: tuple[str, Notices], post: Post
) -> None:
    _, came = notices
    pressure = {"alertname": "LLMKVCachePressure", "notify": "ticket", "service_name": "chat", "instance": "a"}
    long = SLOW_TTFT | {"burn_tier": "long"}
    other = {"service_name": "search"}
    post(PAGE | {"alertname": "LLMGPULost"}, pressure, pressure | other, SLOW_TTFT | other, long | other)
    expected = {
        "/page": {("LLMGPULost", "")},
        "/ticket": {("LLMKVCachePressure", ""), ("LLMTTFTBudgetBurn", "slow"), ("LLMTTFTBudgetBurn", "long")},
    }
    # Tiers are held back for the services of the spec alone: `search` is none of them.
    assert told(came, expected) == expected


@pytest.mark.tools
def test_the_slow_ticket_holds_back_the_long_one(notices: tuple[str, Notices], post: Post) -> None:
    _, came = notices
    post(SLOW_TTFT, SLOW_TTFT | {"burn_tier": "long"}, SLOW_TTFT | {"burn_tier": "long", "model_name": "m2"})
    _, body = came.get(timeout=WAIT_S)
    found = {(a["labels"]["burn_tier"], a["labels"]["model_name"]) for a in body["alerts"]}  # type: ignore[attr-defined]
    assert found == {("slow", "m1"), ("long", "m2")}


@pytest.mark.tools
def test_one_incident_is_one_group_of_pages(notices: tuple[str, Notices], post: Post) -> None:
    _, came = notices
    post(FAST_TTFT, FAST_TTFT | {"objective": "tpot", "alertname": "LLMTPOTBudgetBurn", "model_name": "*"})
    keys = {came.get(timeout=WAIT_S)[1]["groupKey"]}
    post(PAGE | {"alertname": "LLMEngineStalled", "instance": "a"})
    keys.add(came.get(timeout=WAIT_S)[1]["groupKey"])
    assert len(keys) == 1


def test_it_reads_back_as_yaml() -> None:
    assert yaml.safe_load(document(config(), (spec(),))) == config()
