"""A package as its docstring draws it: rows of rooms, shells marked with a star."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

_ROW = re.compile(r"^ {4}\S.{17}([a-z_*]+(?: [a-z_*]+)*)$", re.MULTILINE)

# What a room imports that holds a socket, a clock, a thread, chance or a database's connection.
HOLDS = {
    "asyncio", "ctypes", "fcntl", "http", "httpx", "os", "random", "resource", "secrets", "select", "signal", "socket",
    "sqlite3", "ssl", "subprocess", "threading", "time", "uuid", "uvloop",
    "sqlalchemy.engine.Connection", "sqlalchemy.ext.asyncio.AsyncConnection", "sqlalchemy.ext.asyncio.AsyncEngine",
}  # fmt: skip


def drawn(package: ModuleType) -> list[str]:
    """The rooms in the order they are drawn, with their stars."""
    return [room for row in _ROW.findall(package.__doc__ or "") for room in row.split()]


def folder(package: ModuleType) -> Path:
    return Path(package.__path__[0])


def standing(package: ModuleType) -> list[str]:
    """The rooms that are there, sorted."""
    return sorted(path.stem for path in folder(package).glob("*.py") if path.stem not in ("__init__", "__main__"))


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
