"""What `firsttoken capacity certify` and `capacity batch` found, read from the files they write.

Dashboards draw load against it, and rules tell who runs above it. A file tells numbers of one endpoint, not whose:
`SERVICE=FILE` says so, and FILE alone where slo.yaml has one service.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from slo.objective import Spec
from slo.promised import changed, promised


class CapacityResultError(ValueError):
    """A file that cannot be read or belongs to no service: what, where, what would be right."""


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """What is known of a service; None where a file does not say. Rates are requests per second, batches requests.
    `note` says that it was found for more than is promised today."""

    service: str
    certified_rps: Decimal | None = None
    refuted_rps: Decimal | None = None
    chosen_batch: Decimal | None = None
    feasible_max: Decimal | None = None
    note: str = ""


LEAST, MOST = Decimal("1e-6"), Decimal("1e9")
"""Of a figure; a number beyond is none that was found, and could be longer than a file can hold."""
SIZED = "replay_replicas"
"""What only a result of `capacity size` has; a rate in it is one that it was given."""
FIGURES = ("certified_rps", "refuted_rps", "chosen_batch", "feasible_max")


def read_results(named: Sequence[str], specs: Sequence[Spec]) -> tuple[CapacityResult, ...]:
    """One result a service that arguments name; of two files that tell the same figure the later one is right. Raises
    `CapacityResultError`."""
    found: dict[str, dict[str, Decimal]] = {}
    notes: dict[str, list[str]] = {}
    for argument in named:
        spec, path = _whose(argument, specs)
        said = _said(path)
        found.setdefault(spec.service, {}).update(_figures(path, said))
        notes.setdefault(spec.service, []).extend(_note(path, said, spec))
    return tuple(
        CapacityResult(service, **figures, note="; ".join(notes[service])) for service, figures in found.items()
    )


def _whose(argument: str, specs: Sequence[Spec]) -> tuple[Spec, Path]:
    """The service that an argument speaks of, and the file."""
    services = [spec.service for spec in specs]
    service, is_named, path = argument.rpartition("=")
    if not is_named and len(services) > 1:
        raise CapacityResultError(
            f"--capacity {argument}: whose is it? Write SERVICE={argument}, of {', '.join(services)}"
        )
    service = service if is_named else services[0]
    if not path:
        raise CapacityResultError(f"--capacity {argument} names no file: write SERVICE=FILE")
    if service not in services:
        raise CapacityResultError(f"--capacity {argument}: no service {service} in slo.yaml: use {', '.join(services)}")
    return specs[services.index(service)], Path(path)


def _figures(path: Path, said: Mapping[str, object]) -> Mapping[str, Decimal]:
    if SIZED in said:
        raise CapacityResultError(f"--capacity {path} is a result of capacity size: give that of certify or batch")
    values = {key: said.get(key) for key in FIGURES}
    figures = {key: value for key, value in values.items() if isinstance(value, Decimal) and LEAST <= value <= MOST}
    if not figures and any(key in said and said[key] is None for key in FIGURES):
        raise CapacityResultError(f"--capacity {path}: that run found no figure: give one that certified or chose some")
    if not figures:
        raise CapacityResultError(
            f"--capacity {path}: has none of {', '.join(FIGURES)}: give the JSON of firsttoken capacity"
        )
    return figures


def _note(path: Path, said: Mapping[str, object], spec: Spec) -> Iterator[str]:
    """That it was found for more than is promised today; raises where it was for less."""
    since = changed(promised(said), spec)
    if since.more:
        raise CapacityResultError(
            f"--capacity {path} was found for other promises of {spec.service}: {since.text}; run it again"
        )
    if since.less:
        yield f"{path} was found for other promises, so more may be possible: {since.text}"


def _said(path: Path) -> Mapping[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8-sig"), parse_float=Decimal, parse_int=Decimal)
    except OSError as error:
        raise CapacityResultError(f"--capacity {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise CapacityResultError(f"--capacity {path}: no JSON: give the file that firsttoken capacity wrote") from None
    return found if isinstance(found, dict) else {}
