"""The images, as far as they can be looked at without a container engine; `make check-deploy` runs their installs."""

import re
import tomllib

from tests.deploy.manifests import DEPLOY
from tests.generate_docs import ROOT

DOCKERFILE = (DEPLOY / "docker" / "Dockerfile").read_text()


def stage(name: str) -> str:
    """What a stage does."""
    (found,) = re.findall(rf"^FROM \S+ AS {name}\n(.*?)(?=^FROM |\Z)", DOCKERFILE, re.DOTALL | re.MULTILINE)
    assert isinstance(found, str)
    return found


def test_each_image_has_its_extras_alone() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    installed = {name: re.findall(r"'\.\[([a-z,]+)\]'", stage(f"{name}-build"))[0] for name in ("sidecar", "collector")}
    assert installed == {"sidecar": "sidecar,gpu", "collector": "collector,postgres,dashboards"}
    for names in installed.values():
        wanted = [line for name in names.split(",") for line in extras[name]]
        assert not [line for line in wanted if line.startswith(("torch", "firsttoken["))]


def test_they_run_as_nobody_and_start_what_they_are_named_after() -> None:
    for name in ("sidecar", "collector"):
        assert "USER 65532:65532\n" in stage(name)
        assert f'ENTRYPOINT ["firsttoken", "{name}"]\n' in stage(name)
        assert "COPY . ." not in stage(name)
    assert set(re.findall(r"^FROM ([^\s]+:\S+)", DOCKERFILE, re.MULTILINE)) == {"python:3.12.11-slim-bookworm"}


def test_what_is_copied_in_is_what_the_install_needs() -> None:
    ignored = (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text().split()
    assert ignored[0] == "*"
    kept = {line.removeprefix("!") for line in ignored[1:]}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "bench"}
    assert kept == packages | {"LICENSE", "README.md", "constraints.txt", "pyproject.toml"}
