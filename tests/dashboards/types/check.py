"""Holds every committed dashboard against Grafana's own types of dashboards: a part of `make check`.

Each becomes the value of a constant of the type `Board` (`plain.ts`), so that tsc says what is missing, misspelt or of
another type, panel by panel. The types come through npm, once for each version of the lock file; where there is no npm
nothing is checked, which is said, and in CI is an error.
"""

import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
GENERATED = HERE.parents[2] / "dashboards" / "generated"
MODULES = HERE / "node_modules"
LOCK, INSTALLED = HERE / "package-lock.json", MODULES / ".lock"
TSC = MODULES / "typescript" / "bin" / "tsc"
OPTIONS = {
    "strict": True, "noEmit": True, "skipLibCheck": True, "target": "es2022",
    "module": "nodenext", "moduleResolution": "nodenext", "types": [],
}  # fmt: skip


def main() -> int:
    """Check every dashboard; the exit code of tsc."""
    if shutil.which("npm") is None:
        print("npm is missing, and the types of dashboards are not checked: tests/install_tools.sh", file=sys.stderr)
        return int(os.environ.get("CI") == "true")
    if not (INSTALLED.exists() and filecmp.cmp(LOCK, INSTALLED, shallow=False)):
        subprocess.run(["npm", "ci", "--silent"], cwd=HERE, check=True)
        shutil.copy(LOCK, INSTALLED)
    found = sorted(GENERATED.glob("*/*.json"))
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".types-") as made:
        folder = Path(made)
        shutil.copy(HERE / "plain.ts", folder)
        for path in found:
            (folder / f"{path.parent.name}-{path.stem}.ts").write_text(typed(path))
        (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS}))
        done = subprocess.run(["node", TSC, "--project", folder], cwd=HERE)
    if done.returncode:
        print(f"of {len(found)} dashboards some are not what @grafana/schema says a dashboard is", file=sys.stderr)
    return done.returncode


def typed(path: Path) -> str:
    """A dashboard as a constant of its type."""
    value = json.dumps(json.loads(path.read_text()), indent=1)
    return f"import type {{ Board }} from './plain';\nexport const board: Board = {value};\n"


if __name__ == "__main__":
    sys.exit(main())
