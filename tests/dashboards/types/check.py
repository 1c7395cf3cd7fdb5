"""Holds every committed dashboard against Grafana's own types of dashboards: `make check-dashboards`.

Each becomes the value of a constant of the type `Board` (`plain.ts`), so that tsc says what is missing, misspelt or of
another type, panel by panel.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
GENERATED = HERE.parents[2] / "dashboards" / "generated"
MODULES = HERE / "node_modules"
TSC = MODULES / "typescript" / "bin" / "tsc"
OPTIONS = {
    "strict": True, "noEmit": True, "skipLibCheck": True, "target": "es2022",
    "module": "nodenext", "moduleResolution": "nodenext", "types": [],
}  # fmt: skip


def main() -> int:
    """Check every dashboard; the exit code of tsc."""
    if shutil.which("node") is None or not TSC.exists():
        print("node or its packages are missing: run `make check-dashboards`", file=sys.stderr)
        return 2
    found = sorted(GENERATED.glob("*/*.json"))
    with tempfile.TemporaryDirectory(dir=HERE, prefix=".types-") as made:
        folder = Path(made)
        shutil.copy(HERE / "plain.ts", folder)
        for path in found:
            (folder / f"{path.parent.name}-{path.stem}.ts").write_text(typed(path))
        (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS}))
        done = subprocess.run(["node", TSC, "--project", folder], cwd=HERE)
    print(f"{len(found)} dashboards against @grafana/schema: {'ok' if done.returncode == 0 else 'FAILED'}")
    return done.returncode


def typed(path: Path) -> str:
    """A dashboard as a constant of its type."""
    value = json.dumps(json.loads(path.read_text()), indent=1)
    return f"import type {{ Board }} from './plain';\nexport const board: Board = {value};\n"


if __name__ == "__main__":
    sys.exit(main())
