"""What lies in deploy/compose and deploy/grafana, checked as far as it can be without a container engine: every path,
port, flag and version, and each file against what its reader takes."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from compose_spec import PyOptions

from alerts.cli import main as build_alerts
from dashboards.model import DATASOURCES
from tests.dashboards.live import tool
from tests.generate_docs import flags

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
FILES = sorted(path for folder in (COMPOSE, DEPLOY / "grafana") for path in folder.rglob("*.yaml"))
PINNED = re.compile(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+(?:-[a-z-]+)?")
OURS = ("generate", "sidecar", "collector")
SOURCE_KEYS = {"name", "uid", "type", "access", "url", "user", "isDefault", "jsonData", "secureJsonData"}
PROVIDER_KEYS = {
    "name",
    "folder",
    "folderUid",
    "type",
    "allowUiUpdates",
    "disableDeletion",
    "updateIntervalSeconds",
    "options",
}
GROUP_KEYS = {"orgId", "name", "folder", "interval", "rules"}
RULE_KEYS = {
    "uid", "title", "condition", "data", "for", "keepFiringFor", "noDataState", "execErrState", "annotations", "labels",
}  # fmt: skip
"""Of what Grafana reads from provisioning, all that ours say. It passes over a key it does not know, in silence."""
EXPRESSIONS = "__expr__"
"""What Grafana calls itself where it reckons with the answers of data sources."""


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


@pytest.mark.parametrize(
    "path",
    sorted(path for folder in (COMPOSE, DEPLOY / "grafana") for path in folder.rglob("*.yaml")),
    ids=lambda path: path.name,
)
def test_every_file_is_yaml_and_says_what_it_is(path: Path) -> None:
    assert yaml.safe_load(path.read_text())
    assert path.read_text().startswith("# ")


def test_the_compose_file_is_what_the_specification_allows() -> None:
    """By a strict reader: no unknown key or value. It takes addresses only where Docker also knows a word."""
    text, word = (COMPOSE / "compose.yaml").read_text(), "host.docker.internal:host-gateway"
    assert text.count(word) == 1
    text, reader = text.replace(word, "host.docker.internal:172.17.0.1"), PyOptions(apply_merge=True)
    reader.from_yaml(text)
    for right, wrong in (("ports:", "prots:"), ("unless-stopped", "always-stopped"), ("service_started", "started")):
        with pytest.raises(ValueError, match=wrong.removesuffix(":")):
            reader.from_yaml(text.replace(right, wrong))


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


def test_the_image_has_every_file_that_its_install_needs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = {name.removesuffix("*") for name in project["tool"]["setuptools"]["packages"]["find"]["include"]}
    kept = set(re.findall(r"^!(\S+)", (COMPOSE / "Dockerfile.dockerignore").read_text(), re.MULTILINE))
    assert kept >= packages | {"pyproject.toml", "constraints.txt", project["project"]["readme"], "LICENSE"}
    assert not kept & {"tests", "bench", "deploy", "artifacts"}


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
def test_alertmanager_takes_what_is_generated_and_pages_go_where_pages_do(tmp_path: Path) -> None:
    words = ["--slo", str(ROOT / "slo.yaml"), "--out", str(tmp_path), "--page-webhook", "http://127.0.0.1:1/page"]
    assert build_alerts(["build", *words, "--ticket-webhook", "http://127.0.0.1:1/ticket"]) == 0
    config = str(tmp_path / "alertmanager.yaml")

    def amtool(*told: str) -> str:
        done = subprocess.run([tool("amtool"), *told], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "SUCCESS" in amtool("check-config", config)
    routed = {kind: amtool("config", "routes", "test", f"--config.file={config}", f"notify={kind}").strip()
              for kind in ("page", "ticket")}  # fmt: skip
    assert "page" in routed["page"]
    assert "ticket" in routed["ticket"]


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


def test_grafana_knows_every_key_of_its_provisioning() -> None:
    sources = [yaml_of(f"datasources/{path.name}") for path in (DEPLOY / "grafana" / "datasources").iterdir()]
    providers = yaml_of("dashboards/firsttoken.yaml")
    rules = [yaml_of(f"alerting/{path.name}") for path in (DEPLOY / "grafana" / "alerting").iterdir()]
    assert all(found["apiVersion"] == 1 for found in (*sources, providers, *rules))
    assert all(set(one) <= SOURCE_KEYS for found in sources for one in found["datasources"])
    assert all(set(one) <= PROVIDER_KEYS for one in providers["providers"])
    groups = [group for found in rules for group in found["groups"]]
    assert all(set(group) <= GROUP_KEYS for group in groups)
    assert all(set(rule) <= RULE_KEYS for group in groups for rule in group["rules"])


def test_grafanas_alert_rules_ask_data_sources_that_are_there_and_are_told_apart() -> None:
    (uid,) = (one["uid"] for one in yaml_of("datasources/prometheus.yaml")["datasources"])
    rules = [rule for path in sorted((DEPLOY / "grafana" / "alerting").iterdir())
             for group in yaml_of(f"alerting/{path.name}")["groups"] for rule in group["rules"]]  # fmt: skip
    uids = [rule["uid"] for rule in rules]
    assert len(set(uids)) == len(uids) > 10
    assert all(len(uid) <= 40 for uid in uids)
    for rule in rules:
        refs = [query["refId"] for query in rule["data"]]
        assert len(set(refs)) == len(refs)
        assert rule["condition"] in refs
        assert {query["datasourceUid"] for query in rule["data"]} <= {uid, EXPRESSIONS}


def test_grafanas_alert_rules_are_what_the_command_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (uid,) = (one["uid"] for one in yaml_of("datasources/prometheus.yaml")["datasources"])
    written = ["build", "--slo", str(ROOT / "slo.yaml"), "--out", str(tmp_path), "--grafana-datasource", uid]
    assert build_alerts(written) == 0
    made = {path.name: path.read_text() for path in tmp_path.glob("*.grafana.yaml")}
    committed = {path.name: path.read_text() for path in (DEPLOY / "grafana" / "alerting").iterdir()}
    assert made == committed, "run `make generate`"
    capsys.readouterr()
