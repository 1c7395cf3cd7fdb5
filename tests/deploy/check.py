"""Everything about deploy/ that needs tools of its own: helm, kustomize, schemas, hadolint, and the images' installs.

    python -m tests.deploy.check

Brings the tools into `.venv-deploy` first. Prints a line for each thing that holds, and ends at the first that does
not. What tests look at without the tools (`rendered/`) is made anew.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.deploy import commands, tools
from tests.deploy.manifests import CHART, KUSTOMIZE, NAMES, RENDERED, first_line, helm, objects, render, run
from tests.deploy.tools import HADOLINT, HELM, KUBECTL, PYTHON, ROOT

DOCKERFILE = ROOT / "deploy" / "docker" / "Dockerfile"
FORBIDDEN = {"sidecar": ("torch", "sqlalchemy", "fastapi", "numpy"), "collector": ("torch",)}


def main() -> None:
    """Check all of it."""
    tools.main()
    with tempfile.TemporaryDirectory() as folder:
        keep(Path(folder))
        commands.check(Path(folder) / "started")
        print("the containers' commands start, ask for their token, and the collector hears the sidecar")
        with_what_is_generated(Path(folder))
        images(Path(folder))


def keep(folder: Path) -> None:
    """Render, hold against the schemas, and keep."""
    run(HELM, "lint", "--strict", str(CHART), "--set", "slo=contract")
    RENDERED.mkdir(exist_ok=True)
    for name in NAMES:
        (folder / name).mkdir()
        (RENDERED / f"{name}.yaml").write_text(first_line() + render(name, folder / name))
    run(PYTHON, str(Path(__file__).with_name("schemas.py")), *(str(RENDERED / f"{name}.yaml") for name in NAMES))
    print(f"helm and kustomize render {', '.join(NAMES)}; each object is what its schema allows")


def with_what_is_generated(folder: Path) -> None:
    """The chart and the kustomization with rules and dashboards of a contract in them."""
    chart, boards = folder / "firsttoken", folder / "dashboards"
    shutil.copytree(CHART, chart)
    shutil.copytree(KUSTOMIZE / "dashboards", boards)
    firsttoken = [sys.executable, "-m", "firsttoken"]
    spec = ["--slo", str(ROOT / "slo.yaml"), "--out"]
    subprocess.run([*firsttoken, "alerts", "build", *spec, chart / "made", "--crd"], check=True, capture_output=True)
    for place in (chart / "made", boards):
        subprocess.run([*firsttoken, "dashboards", "build", *spec, place], check=True, capture_output=True)
    made = helm(chart, ["tokenSecret=t"])
    (folder / "made.yaml").write_text(made)
    (folder / "boards.yaml").write_text(run(KUBECTL, "kustomize", str(boards)))
    run(PYTHON, str(Path(__file__).with_name("schemas.py")), str(folder / "made.yaml"), str(folder / "boards.yaml"))
    kinds = [one["kind"] for one in objects(made)]
    assert kinds.count("PrometheusRule") == 2, kinds
    assert kinds.count("ConfigMap") == 1 + len(list(boards.glob("*.json"))), kinds
    files = [one["data"] for one in objects((folder / "boards.yaml").read_text())]
    assert {name: text for file in files for name, text in file.items()} == {
        path.name: path.read_text() for path in boards.glob("*.json")
    }
    packed = run(HELM, "package", str(chart), "--destination", str(folder))
    size = Path(packed.strip().rpartition(" ")[2]).stat().st_size
    assert size < 1 << 19, f"the chart has {size} bytes, and a release must fit into a Secret of 1 MiB"
    print(f"with rules and dashboards the chart has {size:,} bytes; each object is what its schema allows")


def images(folder: Path) -> None:
    """hadolint, and each image's install line in an empty environment, on the files that the image is built from."""
    run(HADOLINT, str(DOCKERFILE))
    ignored = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().split()
    for extras in re.findall(r"'\.\[([a-z,]+)\]'", DOCKERFILE.read_text()):
        name = extras.split(",")[0]
        context, place = folder / f"{name}-context", folder / name
        context.mkdir()
        for kept in (ROOT / word.removeprefix("!") for word in ignored if word.startswith("!")):
            (shutil.copytree if kept.is_dir() else shutil.copy)(kept, context / kept.name)
        venv.create(place, with_pip=True)
        pip = place / "bin" / "pip"
        quietly = ("--quiet", "--disable-pip-version-check", "--no-cache-dir", "--constraint", "constraints.txt")
        subprocess.run([pip, "install", *quietly, f".[{extras}]"], cwd=context, check=True)
        run(place / "bin" / "firsttoken", name, "--version")
        run(pip, "uninstall", "--yes", "pip")
        there = {path.name.lower() for path in place.glob("lib/python*/site-packages/*")}
        assert not there & set(FORBIDDEN[name]), there & set(FORBIDDEN[name])
        size = sum(path.stat().st_size for path in place.rglob("*") if path.is_file() and not path.is_symlink())
        print(f"image {name}: {size / 1e6:,.0f} MB beside its base, and no torch")


if __name__ == "__main__":
    main()
