"""What helm and kustomize make of deploy/: kept in `rendered/`, so that tests look at it where neither is installed.

Each kept file names the digest of what it was made from: after a change there `make check-deploy` makes it anew. The
text of the contract is left out, since it is the user's.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.tools import HELM, KUBECTL, ROOT

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "firsttoken"
KUSTOMIZE = DEPLOY / "kubernetes"
CONTRACT = KUSTOMIZE / "base" / "slo.yaml"
RENDERED = Path(__file__).parent / "rendered"

CHART_VALUES: dict[str, list[str]] = {
    "chart": ["tokenSecret=firsttoken-token"],
    "chart-full": [
        "tokenSecret=firsttoken-token",
        "collector.replicas=2",
        "collector.databaseSecret=firsttoken-database",
        "collector.alertmanagers[0]=http://alertmanager.monitoring:9093",
        "collector.externalUrl=https://firsttoken.example",
        "collector.args[0]=--tick=5s",
        "monitors.labels.release=prometheus",
        "images.pullSecrets[0]=registry",
        "proxies[0].name=chat",
        "proxies[0].upstream=http://vllm.llm:8000",
        "proxies[0].workers=2",
        "proxies[1].name=code",
        "proxies[1].upstream=http://sglang.llm:30000",
        "proxies[1].scrape=off",
        "proxies[1].args[0]=--sample=0.1",
    ],
}
"""Kept renderings of the chart, and the values that differ from its own."""
NAMES = ("example", "example-container", *CHART_VALUES)

Object = dict[str, Any]


def objects(text: str) -> list[Object]:
    """The objects of a stream of YAML."""
    return [one for one in yaml.safe_load_all(text) if one]


def kept(name: str) -> list[Object]:
    """The objects of a kept rendering."""
    return objects((RENDERED / f"{name}.yaml").read_text())


def digest() -> str:
    """Of everything that a kept rendering is made from."""
    sources = [path for folder in (CHART, KUSTOMIZE) for path in folder.rglob("*") if _is_source(path)]
    whole = hashlib.sha256(str(CHART_VALUES).encode())
    for path in sorted(sources):
        whole.update(f"{path.relative_to(DEPLOY).as_posix()}\n".encode() + path.read_bytes())
    return whole.hexdigest()[:16]


def _is_source(path: Path) -> bool:
    """Not what generators write there, and not the contract."""
    made = "made" in path.parts and path.name != ".gitignore"
    drawn = path.parent.name == "dashboards" and path.suffix == ".json"
    return path.is_file() and not made and not drawn and path != CONTRACT


def first_line() -> str:
    """What a kept rendering begins with."""
    return f"# Made by `make check-deploy` from deploy/helm and deploy/kubernetes as of {digest()}.\n"


def render(name: str, folder: Path) -> str:
    """One kept rendering, made by the real tools; `folder` is an empty one to work in."""
    if name in CHART_VALUES:
        return helm(CHART, CHART_VALUES[name])
    shutil.copytree(KUSTOMIZE, folder / "kubernetes")
    (folder / "kubernetes" / "base" / "slo.yaml").write_text("# the contract\n")
    overlay = folder / "kubernetes" / "example"
    if name == "example-container":
        text = (overlay / "kustomization.yaml").read_text()
        (overlay / "kustomization.yaml").write_text(text.replace("../sidecar\n", "../sidecar-container\n"))
    return run(KUBECTL, "kustomize", str(overlay))


def helm(chart: Path, values: list[str]) -> str:
    """A chart with these values, as it would be installed under the name `firsttoken`."""
    settings = [word for value in ["slo=# the contract\n", *values] for word in ("--set", value)]
    return run(HELM, "template", "firsttoken", str(chart), "--namespace", "llm", *settings)


def run(program: Path, *arguments: str) -> str:
    """What a program prints, which must end well."""
    done = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{program.name} {' '.join(arguments[:3])}: {done.stdout}{done.stderr}"
    return done.stdout
