"""The errors of the sidecar are those that its docstring draws, each in the room that it names."""

import importlib
import inspect
import re

import sidecar
from tests import rooms

DRAWN = re.compile(r"^ +(\w+Error) +(?:([a-z_]+)  )?", re.MULTILINE)


def test_every_error_is_drawn_in_its_room() -> None:
    drawn, room = {}, ""
    for name, where in DRAWN.findall(sidecar.__doc__ or ""):
        room = where or room
        drawn[name] = room
    modules = [importlib.import_module(f"sidecar.{room.replace('/', '.')}") for room in rooms.standing(sidecar)]
    raised = {
        name: kind.__module__.rpartition(".")[2]
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == module.__name__
    }
    assert drawn == raised
