"""Everything generated, loaded by a real Prometheus that scrapes a busy fleet: every rule evaluates without a fault."""

import http.server
import json
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from alerts.artefacts import artefacts
from alerts.routes import Routing
from alerts.rules import Target
from slo.objective import Spec, parse
from slo.signals import COLLECTOR_METRICS, GPU_METRICS, WIRE_METRICS, Metric
from tests.alerts.support import tool
from tests.alerts.test_rules import FIVE

pytestmark = pytest.mark.tools

WAIT_S = 60
POLICY = FIVE.replace("500ms}", "500ms, policy: [{budget_left: 50%, do: stop}]}")
SPECS = (*parse(POLICY), *parse("environment: prod" + POLICY.replace("chat", "search")))
SOME = {
    "objective": "ttft",
    "result": "bad",
    "signal": "ttft",
    "reason": "hw_thermal",
    "error_type": "xid",
    "rank": "0",
}
SOME |= {"outcome": "no_output", "class": "batch", "type": "input", "source": "proxy", "kind": "server", "le": "0.5"}


def page(specs: tuple[Spec, ...]) -> str:
    """Two instances of each service and every metric there is, two models each, all counters growing with time."""
    lines = []
    for metric in (*WIRE_METRICS, *GPU_METRICS, *COLLECTOR_METRICS):
        for spec in specs:
            for model in ("m1", "m2"):
                lines += [f"{series(metric, spec, model, replica)} {time.monotonic():.0f}" for replica in ("a", "b")]
    return "\n".join((*sorted(set(lines)), ""))


def series(metric: Metric, spec: Spec, model: str, replica: str) -> str:
    labels = {"service_name": spec.service, "model_name": model, "replica": replica}
    labels |= {"environment": spec.environment} if spec.environment else {}
    labels |= {label: SOME.get(label, "x") for label in metric.labels}
    name = f"{metric.prometheus}_bucket" if metric.kind == "histogram" else metric.prometheus
    labels |= {"le": "0.5"} if metric.kind == "histogram" else {}
    return name + "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"


@pytest.fixture
def target() -> Iterator[str]:
    """Where the fleet is scraped."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(page(SPECS).encode())

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def prometheus(tmp_path: Path, target: str) -> Iterator[str]:
    """A real Prometheus on all that was generated for both services."""
    for name, text in artefacts(SPECS, Target(eval_interval_s=1), Routing()).items():
        if name.endswith(".rules.yaml"):
            (tmp_path / name).write_text(text)
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(tmp_path / "*.rules.yaml")],
        "scrape_configs": [{"job_name": "fleet", "honor_labels": True, "static_configs": [{"targets": [target]}]}],
    }
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [tool("prometheus"), f"--config.file={tmp_path / 'prometheus.yml'}", f"--web.listen-address={address}"]
    command += [f"--storage.tsdb.path={tmp_path / 'data'}"]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
        try:
            yield f"http://{address}"
            assert process.poll() is None, (tmp_path / "log").read_text()
        finally:
            process.terminate()
            process.wait(timeout=WAIT_S)


def rules(url: str) -> list[dict[str, str]]:
    """Every rule as Prometheus sees it; none before it answers."""
    try:
        with urllib.request.urlopen(f"{url}/api/v1/rules", timeout=WAIT_S) as answer:
            groups = json.load(answer)["data"]["groups"]
    except OSError:
        return []
    return [rule for group in groups for rule in group["rules"]]


def test_every_rule_evaluates_over_several_services_instances_and_models(prometheus: str) -> None:
    deadline = time.monotonic() + WAIT_S
    evaluated = 0.0
    found: list[dict[str, str]] = []
    while time.monotonic() < deadline:
        found = rules(prometheus)
        if found and all(rule["health"] != "unknown" for rule in found):
            evaluated = evaluated or time.monotonic()
            if time.monotonic() - evaluated > 5:  # some see only now what others have recorded
                break
        time.sleep(0.5)
    assert evaluated, "not every rule was evaluated"
    assert [(rule["name"], rule["lastError"]) for rule in found if rule["health"] != "ok"] == []
    assert {"LLMWatchdog", "LLMBudgetPolicy", "LLMLatencyDrift"} <= {rule["name"] for rule in found}
