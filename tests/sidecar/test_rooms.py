"""The rooms of the sidecar are those that its docstring draws, and what it calls pure is."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sidecar

FOLDER = Path(sidecar.__path__[0])
ROW = re.compile(r"^ {4}\S.{17}([a-z_*]+(?: [a-z_*]+)*)$", re.MULTILINE)
DRAWN = [room for row in ROW.findall(sidecar.__doc__ or "") for room in row.split()]

# What a room imports that holds a socket, a clock, a thread or chance.
HOLDS = {
    "asyncio", "ctypes", "http", "os", "random", "resource", "select", "signal", "socket", "ssl", "subprocess",
    "threading", "time", "uuid", "uvloop",
}  # fmt: skip


def libraries(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


def test_every_room_stands_in_the_drawing_once() -> None:
    rooms = [path.stem for path in FOLDER.glob("*.py") if path.stem not in ("__init__", "__main__")]
    assert sorted(room.rstrip("*") for room in DRAWN) == sorted(rooms)


@pytest.mark.parametrize("room", DRAWN)
def test_shells_alone_hold_what_is_not_a_value(room: str) -> None:
    held = HOLDS.intersection(libraries(FOLDER / f"{room.rstrip('*')}.py"))
    assert bool(held) is room.endswith("*"), held
