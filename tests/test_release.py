"""What people install: a wheel with all that runs, in an empty environment, one extra at a time.

What is quick is looked at always. `make release-check` builds the source archive and from it the wheel, and installs
that into an environment of its own for each extra (minutes, and for `demo` a large download).
"""

import fnmatch
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.collector.support import SPEC, ask, receiver

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = ("firsttoken", "slo", "sidecar", "collector", "alerts", "dashboards", "capacity", "demo_server")
HEAVY = ("torch", "sqlalchemy", "fastapi", "numpy", "grafanalib", "jinja2")
SIDECAR_IMPORT_S = 0.5
PATIENCE_S = 900

OLD_ROW = (10, int(time.time()) // 10 * 10 - 600, "", "chat", "m", "ttft", "hash", 40, 2)
"""Of a database that the first release has left."""


def tracked(*places: str) -> list[Path]:
    """Files of the project, those that are not committed yet among them."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *places]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [Path(line) for line in listed.splitlines() if (ROOT / line).is_file()]


# What is quick.


def test_all_that_is_no_code_is_declared_to_be_packed() -> None:
    """setuptools leaves out data that nobody names."""
    patterns: dict[str, list[str]] = PROJECT["tool"]["setuptools"]["package-data"]
    left_out = [path for path in tracked(*PACKAGES) if path.suffix != ".py" and not _is_declared(path, patterns)]
    assert left_out == []


def _is_declared(path: Path, patterns: dict[str, list[str]]) -> bool:
    for package, globs in patterns.items():
        folder = path.parent if package == "*" else Path(package.replace(".", "/"))
        if not path.is_relative_to(folder):
            continue
        inside = path.relative_to(folder).as_posix()
        if any(fnmatch.fnmatchcase(inside, one.replace("**/", "")) and _as_deep(inside, one) for one in globs):
            return True
    return False


def _as_deep(inside: str, glob: str) -> bool:
    """A star crosses no folder, unless it is two."""
    return "**" in glob or inside.count("/") == glob.count("/")


def test_every_package_of_ours_is_packed_and_no_other() -> None:
    found = {one.rstrip("*") for one in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert found == set(PACKAGES)


def test_every_package_says_what_it_is() -> None:
    for path in tracked(*PACKAGES):
        if path.suffix == ".py":
            assert (ROOT / path.parent / "__init__.py").exists(), f"{path} lies in no package: it would not be packed"


def test_the_sidecar_is_there_at_once_and_brings_nothing_heavy() -> None:
    """By the processor's time, of which a busy machine takes no more; the least of three, and all of it counts."""
    code = f"import sys, sidecar.cli; print([one for one in {HEAVY!r} if one in sys.modules])"
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
        assert done.stdout == "[]\n"
    assert min(times) < SIDECAR_IMPORT_S


# What takes minutes.

OURS = ("firsttoken", "slo", "sidecar", "collector", "alerts", "dashboards", "capacity")
NEEDS = {
    "sidecar": "sidecar",
    "collector": "collector",
    "dashboards": "dashboards",
    "demo": "demo",
    "demo-server": "demo",
}
"""Commands that say which extra they need where it is not installed."""
EXTRAS = {
    "": (
        ("firsttoken", "--version"),
        ("firsttoken", "--help"),
        ("firsttoken", "slo", "check", "slo.yaml"),
        ("firsttoken", "slo", "schema"),
        ("firsttoken", "status", "--help"),
        ("firsttoken", "alerts", "build", "--slo", "slo.yaml", "--out", "rules"),
        ("python", "-m", "firsttoken", "--version"),
        ("python", "-m", "slo", "check", "slo.yaml"),
        ("python", "-m", "alerts", "build", "--slo", "slo.yaml", "--out", "rules"),
    ),
    "sidecar": (
        ("firsttoken", "sidecar", "--help"),
        ("firsttoken", "doctor", "--help"),
        ("python", "-m", "sidecar", "--version"),
    ),
    "collector": (
        ("firsttoken", "collector", "schema", "--dialect", "sqlite"),
        ("firsttoken", "collector", "schema", "--dialect", "postgresql"),
        ("firsttoken", "collector", "schema", "--dialect", "clickhouse", "--cluster", "main"),
        ("firsttoken", "slo", "replay", "--help"),
        ("python", "-m", "collector", "--version"),
    ),
    "collector,postgres": (("python", "-c", "import asyncpg, collector.running"),),
    "collector,clickhouse": (
        ("python", "-c", "import clickhouse_connect"),
        ("firsttoken", "collector", "mirror", "--help"),
    ),
    "dashboards": (
        ("firsttoken", "dashboards", "build", "--slo", "slo.yaml", "--out", "boards"),
        ("python", "-m", "dashboards", "check", "boards"),
    ),
    "capacity": (
        ("firsttoken", "capacity", "certify", "--help"),
        ("python", "-m", "capacity", "size", "--help"),
    ),
    "gpu": (("python", "-c", "import pynvml"),),
    "demo": (
        ("firsttoken", "demo-server", "--help"),
        ("python", "-m", "demo_server", "--help"),
        ("firsttoken", "demo", "--help"),
    ),
}
"""What must work where one extra is installed, and no other."""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source archive, and the wheel that was built from it."""
    place = tmp_path_factory.mktemp("release")
    for path in tracked():
        (place / "source" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, place / "source" / path)
    python = _venv(place / "builder")
    _run([python, "-m", "pip", "install", "--quiet", "build"], place)
    _run([python, "-m", "build", "--outdir", place / "dist", place / "source"], place)
    return place / "dist"


def _venv(folder: Path) -> Path:
    _run([sys.executable, "-m", "venv", folder], folder.parent)
    return folder / "bin" / "python"


def _run(command: Sequence[str | Path], folder: Path) -> "subprocess.CompletedProcess[str]":
    """Run the command as a stranger would, outside the project."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, env=_strangers())
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-4000:])
    return done


def _strangers() -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("FIRSTTOKEN_", "OTEL_", "PYTHON"))
    }
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """An empty folder with a spec in it. An environment that was made there is gone after the test: it is large."""
    (tmp_path / "slo.yaml").write_text(SPEC)
    yield tmp_path
    shutil.rmtree(tmp_path / "venv", ignore_errors=True)


def installed(built: Path, extra: str, folder: Path) -> Path:
    """The `bin` of an environment with the wheel and one extra."""
    (wheel,) = built.glob("*.whl")
    python = _venv(folder / "venv")
    name = f"firsttoken[{extra}] @ {wheel.as_uri()}" if extra else f"firsttoken @ {wheel.as_uri()}"
    _run([python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", name], folder)
    _run([python, "-m", "pip", "check"], folder)
    return python.parent


@pytest.mark.release
@pytest.mark.timeout(PATIENCE_S)
def test_the_wheel_holds_all_that_runs_and_nothing_else(built: Path) -> None:
    (wheel,), (archive,) = built.glob("*.whl"), built.glob("*.tar.gz")
    names = {one for one in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in one}
    assert names == {path.as_posix() for path in tracked(*PACKAGES)}
    with tarfile.open(archive) as packed:
        inside = {one.name.partition("/")[2] for one in packed.getmembers()}
    assert {"pyproject.toml", "README.md", "LICENSE"} | names <= inside


@pytest.mark.release
@pytest.mark.timeout(3 * PATIENCE_S)
@pytest.mark.parametrize("extra", EXTRAS)
def test_what_an_extra_promises_works_in_an_empty_environment(built: Path, extra: str, place: Path) -> None:
    where = installed(built, extra, place)
    for name, *given in EXTRAS[extra]:
        _run([where / name, *given], place)
    if extra == "":
        assert list((place / "rules").rglob("*.md"))
        for command, needed in NEEDS.items():
            lacks = subprocess.run([where / "firsttoken", command], cwd=place, capture_output=True, text=True)
            assert (lacks.returncode, lacks.stderr) == (
                2,
                f"firsttoken {command}: needs the extra: pip install 'firsttoken[{needed}]'\n",
            )
    if extra == "sidecar":
        _sidecar_runs(where, place)
    if extra == "collector":
        _collector_takes_up_an_old_database(where, place)


def _sidecar_runs(where: Path, place: Path) -> None:
    absent = f"import importlib.util as u; print([one for one in {HEAVY!r} if one != 'numpy' and u.find_spec(one)])"
    assert _run([where / "python", "-c", absent], place).stdout == "[]\n"
    with receiver() as upstream:
        flags = ["--upstream", upstream.url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        with _running([where / "firsttoken", "sidecar", *flags], place) as lines:
            told = dict(line.split() for line in (next(lines), next(lines)))
            assert ask(f"{told['admin:']}/metrics").status == 200


def _collector_takes_up_an_old_database(where: Path, place: Path) -> None:
    """Templates, styles and revisions are in the wheel, and what the first release counted is kept."""
    old = place / "old.db"
    with closing(sqlite3.connect(old)) as connection:
        mark = "CREATE TABLE schema_version (version_num TEXT NOT NULL, PRIMARY KEY (version_num));"
        first = (ROOT / "collector/migrations/0001.sqlite.sql").read_text()
        connection.executescript(f"{mark} INSERT INTO schema_version VALUES ('0001'); {first}")
        connection.execute(f"INSERT INTO slo_count VALUES ({', '.join('?' * len(OLD_ROW))})", OLD_ROW)
        connection.commit()
    flags = ["--slo", "slo.yaml", "--database", "old.db", "--listen", "127.0.0.1:0", "--grpc", "off"]
    with _running([where / "firsttoken", "collector", *flags], place) as lines:
        url = next(lines).split()[1]
        page = ask(f"{url}/")
        assert page.status == 200
        for link in _links(page.body.decode()):
            assert ask(f"{url}{link}").status == 200, link
        assert json.loads(ask(f"{url}/api/v1/status").body)["objectives"]
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("SELECT version_num FROM schema_version").fetchall() != [("0001",)]
        assert connection.execute("SELECT * FROM slo_count").fetchall() == [OLD_ROW]


def _links(page: str) -> set[str]:
    """The files of our own that a page needs."""
    found = {part.split('"')[0] for part in page.replace("href=", "src=").split('src="')[1:]}
    links = {f"/{one.lstrip('/')}" for one in found if one.partition("?")[0].endswith((".css", ".js", ".svg"))}
    assert links, "a page without its style"
    return links


@contextmanager
def _running(command: Sequence[str | Path], place: Path) -> Iterator[Iterator[str]]:
    """The lines that a service says, which ends well by SIGTERM."""
    with (place / "log").open("w") as errors:
        process = subprocess.Popen(
            command, cwd=place, stdout=subprocess.PIPE, stderr=errors, text=True, env=_strangers()
        )
    assert process.stdout is not None
    try:
        yield iter(process.stdout.readline, "")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, (place / "log").read_text()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()
