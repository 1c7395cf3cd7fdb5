"""A package as its docstring draws it: a row of rooms for each folder, shells marked with a star."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

_ROW = re.compile(r"^ {4}(?=.{18}\S)(the [a-z]+ +|[a-z]+ +| {18})([a-z_*]+(?: [a-z_*]+)*)$", re.MULTILINE)

# What a room imports that holds a socket, a clock, a thread, chance or a database's connection.
HOLDS = {
    "asyncio", "concurrent", "ctypes", "fcntl", "http", "httpx", "os", "random", "resource", "secrets", "select",
    "signal", "socket", "sqlite3", "ssl", "subprocess", "threading", "time", "uuid", "uvloop",
    "sqlalchemy.engine.Connection", "sqlalchemy.ext.asyncio.AsyncConnection", "sqlalchemy.ext.asyncio.AsyncEngine",
    "collector.storage.file_engine.AnyConnection", "collector.storage.file_engine.AnyEngine",
}  # fmt: skip


def drawn(package: ModuleType) -> list[str]:
    """The rooms in the order they are drawn, each with its folder and its star: `keeping/store*`."""
    found, place = [], ""
    for label, row in _ROW.findall(package.__doc__ or ""):
        word = label.strip()
        if word:
            place = "" if word.startswith("the ") else f"{word}/"
        found += [f"{place}{room}" for room in row.split()]
    return found


def folder(package: ModuleType) -> Path:
    return Path(package.__path__[0])


def standing(package: ModuleType) -> list[str]:
    """The rooms that are there, sorted; revisions of tables are none."""
    top = folder(package)
    rooms = (path.relative_to(top) for path in top.rglob("*.py") if path.stem not in ("__init__", "__main__"))
    return sorted(room.with_suffix("").as_posix() for room in rooms if room.parts[0] != "migrations")


def held(path: Path) -> set[str]:
    """What a room holds that is no value."""
    return HOLDS.intersection(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
