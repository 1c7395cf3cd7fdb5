"""The errors of the sidecar are those that its docstring draws, each in the room that it names."""

import importlib
import inspect
import pkgutil
import re

import sidecar

DRAWN = re.compile(r"^ +(\w+Error) +(?:([a-z_]+)  )?", re.MULTILINE)


def test_every_error_is_drawn_in_its_room() -> None:
    drawn, room = {}, ""
    for name, where in DRAWN.findall(sidecar.__doc__ or ""):
        room = where or room
        drawn[name] = f"sidecar.{room}"
    rooms = [one.name for one in pkgutil.iter_modules(sidecar.__path__) if one.name != "__main__"]
    modules = [importlib.import_module(f"sidecar.{one}") for one in rooms]
    raised = {
        name: kind.__module__
        for module in modules
        for name, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Exception) and kind.__module__ == module.__name__
    }
    assert drawn == raised
