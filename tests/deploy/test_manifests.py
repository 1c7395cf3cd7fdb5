"""The manifests as helm and kustomize make them: what no schema knows, of names that must meet and of flags of ours."""

import json
import re
from typing import Any

import pytest
import yaml

from slo.objective import load
from tests.deploy.manifests import CHART, CONTRACT, DEPLOY, KUSTOMIZE, NAMES, RENDERED, Object, first_line, kept
from tests.generate_docs import ROOT, flags

OUTSIDE = {"firsttoken-token", "firsttoken-database", "registry"}
"""Secrets that the user brings."""
PINNED = re.compile(r"[a-z0-9./-]+:v?\d+\.\d+\.\d+")


@pytest.fixture(scope="module", params=NAMES)
def rendered(request: pytest.FixtureRequest) -> list[Object]:
    return kept(request.param)


def pods(rendered: list[Object]) -> list[Object]:
    """The pod templates."""
    return [one["spec"]["template"] for one in rendered if one["kind"] in ("Deployment", "StatefulSet")]


def containers(pod: Object) -> list[Object]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def ours(rendered: list[Object]) -> list[tuple[Object, Object]]:
    """Our containers, each with its pod."""
    return [(pod, one) for pod in pods(rendered) for one in containers(pod) if "firsttoken" in one["image"]]


def ports(pod: Object) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for one in containers(pod) for port in one.get("ports", [])}


def is_of(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def test_the_kept_renderings_are_of_what_lies_in_deploy() -> None:
    stale = [name for name in NAMES if not (RENDERED / f"{name}.yaml").read_text().startswith(first_line())]
    assert stale == [], "run `make check-deploy`"


def test_the_contract_of_the_base_is_the_example() -> None:
    assert CONTRACT.read_text() == (ROOT / "slo.yaml").read_text(), "run `make generate`"
    assert load([str(CONTRACT)])


def test_every_command_of_ours_has_flags_that_are_there(rendered: list[Object]) -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    for _, container in ours(rendered):
        command = "sidecar" if "sidecar" in container["image"] else "collector"
        section = page.split(f"## firsttoken {command}\n")[1].split("\n## ")[0]
        assert {flag.split("=")[0] for flag in container["args"]} <= flags(section)
        assert "--insecure" not in container["args"]


def test_every_service_leads_to_pods_and_every_probe_to_a_port(rendered: list[Object]) -> None:
    services = [one for one in rendered if one["kind"] == "Service"]
    assert services
    for service in services:
        (pod,) = (pod for pod in pods(rendered) if is_of(service["spec"]["selector"], pod["metadata"]["labels"]))
        # A named port of a native sidecar is found by no Service before Kubernetes 1.32.
        named = {port["name"] for one in pod["spec"]["containers"] for port in one["ports"]}
        assert all(port["targetPort"] in {*named, *ports(pod).values()} for port in service["spec"]["ports"])
    for pod, container in ours(rendered):
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            found = container[probe]["httpGet"]
            assert found["port"] in ports(pod)
            assert found["path"] == ("/readyz" if probe == "readinessProbe" else "/healthz")


def test_ports_are_those_that_are_listened_on(rendered: list[Object]) -> None:
    for _, container in ours(rendered):
        told = {int(flag.rpartition(":")[2]) for flag in container["args"] if re.match(r"--(listen|grpc|admin)=", flag)}
        assert told == {port["containerPort"] for port in container["ports"]}


def test_every_monitor_finds_pods_and_a_port(rendered: list[Object]) -> None:
    monitors = [one for one in rendered if one["kind"] in ("PodMonitor", "ServiceMonitor")]
    assert len(monitors) == 2
    for monitor in monitors:
        spec, selector = monitor["spec"], monitor["spec"]["selector"]["matchLabels"]
        if monitor["kind"] == "ServiceMonitor":
            (service,) = (o for o in rendered if o["kind"] == "Service" and is_of(selector, o["metadata"]["labels"]))
            assert spec["endpoints"][0]["port"] in {port["name"] for port in service["spec"]["ports"]}
            continue
        found = [pod for pod in pods(rendered) if is_of(selector, pod["metadata"]["labels"])]
        assert len(found) == len([1 for _, container in ours(rendered) if "sidecar" in container["image"]])
        assert all(spec["podMetricsEndpoints"][0]["port"] in ports(pod) for pod in found)


def test_every_name_that_is_referred_to_is_there(rendered: list[Object]) -> None:
    made = {one["metadata"]["name"] for one in rendered if one["kind"] in ("ConfigMap", "Secret")} | OUTSIDE
    assert _referred(rendered) <= made
    for pod in pods(rendered):
        claims = {"data"}
        volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])} | claims
        for container in containers(pod):
            assert {mount["name"] for mount in container.get("volumeMounts", [])} <= volumes


def _referred(of: Any) -> set[str]:
    """Names of Secrets and ConfigMaps, wherever they stand."""
    if isinstance(of, list):
        return set().union(*map(_referred, of)) if of else set()
    if not isinstance(of, dict):
        return set()
    found = {of["secretName"]} if "secretName" in of else set()
    for key in ("configMap", "secretKeyRef", "credentials"):
        found |= {of[key]["name"]} if key in of else set()
    return found.union(*map(_referred, of.values()))


def test_our_containers_may_do_nothing_and_write_nowhere(rendered: list[Object]) -> None:
    assert ours(rendered)
    for pod, container in ours(rendered):
        both = pod["spec"].get("securityContext", {}) | container["securityContext"]
        assert both["runAsNonRoot"]
        assert both["runAsUser"] == 65532
        assert both["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not both["allowPrivilegeEscalation"]
        assert both["readOnlyRootFilesystem"]
        assert both["capabilities"] == {"drop": ["ALL"]}
        assert "cpu" not in container["resources"]["limits"], "a limit of CPU holds up tokens"
        assert PINNED.fullmatch(container["image"])


def test_the_sidecar_is_native_where_it_can_be_and_waits_where_it_cannot() -> None:
    ((_, native),) = [(p, c) for p, c in ours(kept("example")) if "sidecar" in c["image"]]
    ((pod, ordinary),) = [(p, c) for p, c in ours(kept("example-container")) if "sidecar" in c["image"]]
    assert native["restartPolicy"] == "Always"
    assert "initContainers" not in pod["spec"]
    # In everything else they are the same.
    assert ordinary.pop("lifecycle") == {"preStop": {"exec": {"command": ["sleep", "10"]}}}
    native.pop("restartPolicy")
    assert native == ordinary


def test_one_label_attaches_a_server_and_its_service() -> None:
    rendered = kept("example")
    (service,) = (o for o in rendered if o["kind"] == "Service" and o["metadata"]["name"] == "chat")
    assert service["spec"]["ports"][0]["targetPort"] == 8001
    before = list(yaml.safe_load_all((KUSTOMIZE / "example" / "vllm.yaml").read_text()))
    (deployment,) = (one for one in before if one["kind"] == "Deployment")
    (after,) = (one for one in rendered if one["kind"] == "Deployment")
    assert deployment["spec"]["template"]["spec"]["containers"] == after["spec"]["template"]["spec"]["containers"]


def test_several_collectors_share_a_database() -> None:
    (shared,) = (one for one in kept("chart-full") if one["kind"] == "StatefulSet")
    assert "volumeClaimTemplates" not in shared["spec"]
    assert "--database-file=/etc/firsttoken/database/url" in shared["spec"]["template"]["spec"]["containers"][0]["args"]


def test_what_is_generated_comes_in_by_its_own_names() -> None:
    listed = yaml.safe_load((KUSTOMIZE / "dashboards" / "kustomization.yaml").read_text())["configMapGenerator"]
    built = {path.name for path in (ROOT / "dashboards" / "generated" / "prometheus").glob("*.json")}
    assert {file for one in listed for file in one["files"]} == built
    assert 'Glob "made/*.prometheusrule.yaml"' in (CHART / "templates" / "rules.yaml").read_text()


def test_every_file_says_what_it_is() -> None:
    silent = [
        path.relative_to(DEPLOY).as_posix()
        for path in [
            *KUSTOMIZE.rglob("*.yaml"),
            *(DEPLOY / "systemd").iterdir(),
            *(DEPLOY / "docker").glob("Dockerfile"),
        ]
        if not path.read_text().startswith("# ")
    ]
    assert silent == []


def test_the_chart_says_of_every_value_what_it_may_be() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    # Helm itself adds `global` to the values of every chart.
    assert set(schema["properties"]) == {*values, "global"}
    assert schema["additionalProperties"] is False


def test_versions_are_the_projects() -> None:
    (version,) = re.findall(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)
    images = {c["image"] for name in NAMES for _, c in ours(kept(name))}
    assert images == {f"firsttoken-sidecar:{version}", f"firsttoken-collector:{version}"}
    told = re.findall(r"--tag (\S+)", (DEPLOY / "docker" / "Dockerfile").read_text())
    assert set(told) == images
