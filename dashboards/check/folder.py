"""The dashboards of a folder against the rules, and against each other."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dashboards.check.rules import faults
from dashboards.errors import UsageError
from dashboards.model import Json, JsonObject
from slo.output import unlisted

SHOWN = 3
"""Places of a broken rule that are named; the rest are counted."""
UNIQUE = ("uid", "title")
"""F06: Grafana stops provisioning a whole folder when two of its dashboards share one of these."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with a file; nothing when it keeps every rule."""

    path: Path
    faults: tuple[str, ...]


def checked(folder: Path) -> tuple[Finding, ...]:
    """Every `.json` under a folder. Raises `UsageError` when there is none, or one cannot be read."""
    found = {path: _read(path) for path in sorted(folder.rglob("*.json"))}
    if not found:
        if why := unlisted(folder):
            raise UsageError(f"{folder}: {why}: give a folder that holds dashboards")
        raise UsageError(f"{folder} holds no dashboards: run firsttoken dashboards build --out {folder}")
    shared = _shared(found)
    return tuple(Finding(path, (*_own(dashboard), *shared[path])) for path, dashboard in found.items())


def _read(path: Path) -> Json:
    try:
        found: Json = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: no JSON ({error}): give a folder that holds dashboards alone") from None
    return found


def _own(dashboard: Json) -> Iterator[str]:
    if not isinstance(dashboard, Mapping):
        yield "no dashboard: an object with panels is one"
        return
    for sentence, places in faults(dashboard).items():
        more = f", and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
        yield f"broken: {sentence}: {'; '.join(places[:SHOWN])}{more}"


def _shared(found: Mapping[Path, Json]) -> Mapping[Path, list[str]]:
    """For each file the values that another one has too and must not."""
    dashboards: dict[Path, JsonObject] = {path: one for path, one in found.items() if isinstance(one, Mapping)}
    shared: dict[Path, list[str]] = {path: [] for path in found}
    for key in UNIQUE:
        by_value: dict[str, list[Path]] = {}
        for path, one in dashboards.items():
            by_value.setdefault(str(one.get(key)), []).append(path)
        for value, paths in by_value.items():
            for path in paths if len(paths) > 1 else ():
                shared[path].append(f"broken: no other has its {key}: {value}")
    return shared
