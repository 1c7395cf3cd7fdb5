"""The house as it is drawn: who may import what, how long things are, and where names are typed."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slo import signals

ROOT = Path(__file__).parents[1]
PACKAGES = ("firsttoken", "slo", "sidecar", "collector", "alerts", "dashboards", "capacity", "demo_server")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MAX_FUNCTION_LINES = 70
MAX_FILE_LINES = 400
MAX_PARAMETERS = 8

# A library that one room alone may import, and that room.
ONLY_IMPORTER = {
    "opentelemetry.sdk": {"sidecar/telling/emit.py"},
    "opentelemetry.exporter": {"sidecar/telling/emit.py"},
    "pynvml": {"sidecar/gpus/gpu.py"},
    "grafanalib": {"dashboards/grafana/panels.py", "dashboards/grafana/board.py"},
    "resvg_py": {"capacity/report/png.py"},
    "prometheus_client": {
        "sidecar/telling/exposition.py",
        "collector/answering/exposition.py",
        "demo_server/metrics.py",
    },
}
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "common", "core", "base", "manager", "misc"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("library", ONLY_IMPORTER)
def test_one_room_alone_imports(library: str) -> None:
    found = {name(p) for p in SOURCES for m in imports(p) if m == library or m.startswith(f"{library}.")}
    assert found <= ONLY_IMPORTER[library]


def test_the_import_contracts_hold() -> None:
    result = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_functions_fit_a_screen() -> None:
    long = [
        f"{name(path)}:{f.lineno} {f.name}: {f.end_lineno - f.lineno + 1} lines"
        for path in SOURCES
        for f in functions(path)
        if f.end_lineno is not None and f.end_lineno - f.lineno >= MAX_FUNCTION_LINES
    ]
    assert long == []


def test_functions_take_few_arguments() -> None:
    wide = []
    for path in SOURCES:
        for f in functions(path):
            taken = [
                a.arg for a in (*f.args.posonlyargs, *f.args.args, *f.args.kwonlyargs) if a.arg not in ("self", "cls")
            ]
            if len(taken) > MAX_PARAMETERS:
                wide.append(f"{name(path)}:{f.lineno} {f.name}: {len(taken)}")
    assert wide == []


def test_files_have_one_purpose_and_say_it_first() -> None:
    long = {name(p): n for p in SOURCES if (n := len(p.read_text().splitlines())) > MAX_FILE_LINES}
    assert long == {}
    silent = [name(p) for p in SOURCES if p.read_text().strip() and ast.get_docstring(tree(p)) is None]
    assert silent == []
    assert [name(p) for p in SOURCES if p.stem in VAGUE_NAMES] == []


def test_every_room_with_logic_has_its_mirror_among_the_tests() -> None:
    bare = []
    for path in SOURCES:
        if path.name in ("__init__.py", "__main__.py", "errors.py") or "migrations" in path.parts:
            continue
        mirror = ROOT / "tests" / path.relative_to(ROOT).with_name(f"test_{path.name}")
        if any(functions(path)) and not mirror.exists():
            bare.append(name(path))
    assert bare == []


METRIC_NAME = re.compile(r"(firsttoken|gen_ai|hw)\.[a-z_.]+|firsttoken_[a-z_]+(_total|_seconds|_ratio)|gen_ai_[a-z_]+")
TYPED_ELSEWHERE = {"firsttoken.db", "firsttoken.cli", "firsttoken.__main__", "firsttoken.service"}


def test_names_on_the_wire_are_typed_in_one_place() -> None:
    typed = []
    for path in SOURCES:
        if path.parts[len(ROOT.parts)] == "demo_server" or name(path) == "slo/signals.py":
            continue
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                found = METRIC_NAME.fullmatch(node.value)
                if found and node.value not in TYPED_ELSEWHERE:
                    typed.append(f"{name(path)}:{node.lineno} {node.value}")
    assert typed == []


def test_prometheus_names_of_metrics_are_never_typed_outside_signals() -> None:
    metrics = (*signals.WIRE_METRICS, *signals.GPU_METRICS, *signals.SIDECAR_METRICS, *signals.COLLECTOR_METRICS)
    names = {n for m in metrics for n in (m.name, m.prometheus)}
    typed = [
        f"{name(path)}:{number} {n}"
        for path in SOURCES
        if name(path) != "slo/signals.py"
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for n in names
        if f'"{n}"' in line or f"'{n}'" in line
    ]
    assert typed == []


LEFT_OVER = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
TRACKED_TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".txt", ".html", ".css", ".js", ".json", ""}


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / line for line in listed.splitlines() if (ROOT / line).is_file()]


def test_nothing_is_left_undone_in_the_source() -> None:
    assert [name(p) for p in SOURCES if LEFT_OVER.search(p.read_text())] == []


def test_the_project_names_no_machine_of_its_makers() -> None:
    leak = re.compile(r"(?<![\w./-])/(?:work|root)/|/tmp/[a-z]+/")
    found = [
        f"{name(path)}:{number}"
        for path in tracked()
        if path.suffix in TRACKED_TEXT and path != Path(__file__)
        for number, line in enumerate(path.read_text(errors="ignore").splitlines(), 1)
        if leak.search(line)
    ]
    assert found == []
