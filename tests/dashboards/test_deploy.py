"""What lies in deploy/, checked as far as it can be without a container engine: every path, port, flag and version."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.cli import main as build_alerts
from dashboards.model import DATASOURCES
from tests.dashboards.live import tool
from tests.generate_docs import flags

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
PINNED = re.compile(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+(?:-[a-z-]+)?")
OURS = ("generate", "sidecar", "collector")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
    assert isinstance(found, dict)
    return found


@pytest.fixture(scope="module")
def scraped() -> dict[str, Any]:
    found = yaml.safe_load((COMPOSE / "prometheus.yaml").read_text())
    assert isinstance(found, dict)
    return found


def yaml_of(path: str) -> Any:
    return yaml.safe_load((DEPLOY / "grafana" / path).read_text())


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.yaml")), ids=lambda path: path.name)
def test_every_file_is_yaml_and_says_what_it_is(path: Path) -> None:
    assert yaml.safe_load(path.read_text())
    assert path.read_text().startswith("# ")


def test_every_image_is_of_a_version(compose: dict[str, Any]) -> None:
    images = {name: service["image"] for name, service in compose["services"].items()}
    assert [name for name, image in images.items() if not PINNED.fullmatch(image)] == []
    froms = re.findall(r"^FROM (\S+)", (COMPOSE / "Dockerfile").read_text(), re.MULTILINE)
    assert froms
    assert all(PINNED.fullmatch(image) for image in froms)


def test_every_path_that_is_mounted_or_built_is_there(compose: dict[str, Any]) -> None:
    mounts = [volume.split(":")[0] for service in compose["services"].values() for volume in service["volumes"]]
    missing = [m for m in mounts if not ((COMPOSE / m).exists() if m.startswith(".") else m in compose["volumes"])]
    assert missing == []
    assert {m for m in mounts if not m.startswith(".")} == set(compose["volumes"])
    build = compose["services"]["generate"]["build"]
    assert (COMPOSE / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).exists()
    kept = re.findall(r"^!(\S+)", (COMPOSE / "Dockerfile.dockerignore").read_text(), re.MULTILINE)
    assert [name for name in kept if not (ROOT / name).exists()] == []


def test_the_image_has_every_extra_that_it_is_asked_for() -> None:
    project = (ROOT / "pyproject.toml").read_text()
    (extras,) = re.findall(r"'\.\[([a-z,]+)\]'", (COMPOSE / "Dockerfile").read_text())
    assert all(re.search(rf"^{extra} = \[", project, re.MULTILINE) for extra in extras.split(","))


def test_services_wait_for_services_that_are_there_and_for_what_is_generated(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services)
        if name != "generate":
            assert service["depends_on"]["generate"] == {"condition": "service_completed_successfully"}


def test_only_loopback_is_published(compose: dict[str, Any]) -> None:
    ports = [port for service in compose["services"].values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len(set(ports)) == len(ports)


def commands(compose: dict[str, Any]) -> list[list[str]]:
    """Every command of ours as words, without what a shell puts around them."""
    script = compose["services"]["generate"]["command"][-1].replace("\\\n", " ").replace("$$", "$")
    said = [shlex.split(line) for line in script.splitlines() if line.strip()]
    return [*said, *(compose["services"][name]["command"] for name in OURS[1:])]


def test_every_command_of_ours_has_flags_that_are_there(compose: dict[str, Any]) -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    for program, *words in commands(compose):
        assert program == "firsttoken"
        name = " ".join(word for word in words[:2] if not word.startswith("-") and "/" not in word)
        section = page.split(f"## firsttoken {name}\n")[1].split("\n## ")[0]
        assert {word.split("=")[0] for word in words if word.startswith("--")} <= flags(section), name


def test_what_it_generates_is_what_prometheus_alertmanager_and_grafana_read(
    compose: dict[str, Any], scraped: dict[str, Any], tmp_path: Path
) -> None:
    for _, *words in commands(compose)[:2]:
        told = [re.sub(r"^/generated", str(tmp_path), word) for word in words]
        told = ["http://127.0.0.1:1/" if word.startswith("$") else word for word in told]
        told = [str(ROOT / "slo.yaml") if word == "/etc/firsttoken/slo.yaml" else word for word in told]
        subprocess.run([sys.executable, "-m", "firsttoken", *told], check=True, capture_output=True, timeout=60)
    (rules,) = scraped["rule_files"]
    assert list(tmp_path.glob(rules.removeprefix("/generated/")))
    (config,) = (word for word in compose["services"]["alertmanager"]["command"] if "config.file" in word)
    assert (tmp_path / config.split("=/generated/")[1]).exists()
    (provider,) = yaml_of("dashboards/firsttoken.yaml")["providers"]
    assert len(list(tmp_path.glob(f"{provider['options']['path'].removeprefix('/generated/')}/*.json"))) == 7
    pace = f'"interval": "{scraped["global"]["scrape_interval"]}"'
    assert pace in (tmp_path / "dashboards" / "latency.json").read_text()


@pytest.mark.tools
def test_prometheus_takes_its_configuration(tmp_path: Path) -> None:
    text = (COMPOSE / "prometheus.yaml").read_text().replace("/generated/alerts", str(ROOT / "alerts" / "generated"))
    (tmp_path / "prometheus.yaml").write_text(text)
    done = subprocess.run(
        [tool("promtool"), "check", "config", "prometheus.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_address_is_that_of_a_service_and_its_port(compose: dict[str, Any], scraped: dict[str, Any]) -> None:
    told = " ".join(" ".join(compose["services"][name]["command"]) for name in OURS)
    listens = {"sidecar:9464": "--admin=0.0.0.0:9464", "collector:4318": "--listen=0.0.0.0:4318"}
    targets = {target for job in scraped["scrape_configs"] for of in job["static_configs"] for target in of["targets"]}
    assert targets == {*listens, "localhost:9090"}
    assert all(flag in told for flag in listens.values())
    assert "--otlp-endpoint=http://collector:4318" in told
    published = {port.split(":", 1)[1] for service in compose["services"].values() for port in service.get("ports", [])}
    (source,) = yaml_of("datasources/prometheus.yaml")["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert {"9090:9090", "9093:9093", "3000:3000"} < published
    assert source["jsonData"]["timeInterval"] == scraped["global"]["scrape_interval"]


def test_each_kind_of_datasource_has_a_file_and_a_uid_of_its_own() -> None:
    found = {path.stem: yaml_of(f"datasources/{path.name}")["datasources"][0]
             for path in (DEPLOY / "grafana" / "datasources").iterdir()}  # fmt: skip
    assert {name: one["type"] for name, one in found.items()} == {n: d.plugin for n, d in DATASOURCES.items()}
    assert len({one["uid"] for one in found.values()}) == len(found)


def test_grafanas_alert_rules_are_what_the_command_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (uid,) = (one["uid"] for one in yaml_of("datasources/prometheus.yaml")["datasources"])
    written = ["build", "--slo", str(ROOT / "slo.yaml"), "--out", str(tmp_path), "--grafana-datasource", uid]
    assert build_alerts(written) == 0
    made = {path.name: path.read_text() for path in tmp_path.glob("*.grafana.yaml")}
    committed = {path.name: path.read_text() for path in (DEPLOY / "grafana" / "alerting").iterdir()}
    assert made == committed, "run `make generate`"
    capsys.readouterr()
