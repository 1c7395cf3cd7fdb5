"""What `firsttoken capacity certify` and `capacity batch` found, read from the files they write.

A file tells numbers of one endpoint, not whose: `SERVICE=FILE` says so, and FILE alone where slo.yaml has one service.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from dashboards.errors import UsageError
from dashboards.promise import Limit
from slo.objective import Spec
from slo.quantity import plain


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """What is known of a service; None where a file does not say. Rates are requests per second, batches requests."""

    service: str
    certified_rps: Decimal | None = None
    refuted_rps: Decimal | None = None
    chosen_batch: Decimal | None = None
    feasible_max: Decimal | None = None


FIGURES = ("certified_rps", "refuted_rps", "chosen_batch", "feasible_max")


def read_results(named: Sequence[str], specs: Sequence[Spec]) -> tuple[CapacityResult, ...]:
    """One result a service that arguments name; of two files that tell the same figure the later one is right. Raises
    `UsageError` for what cannot be read or belongs to no service."""
    found: dict[str, dict[str, Decimal]] = {}
    for argument in named:
        service, figures = _read(argument, [spec.service for spec in specs])
        found.setdefault(service, {}).update(figures)
    return tuple(CapacityResult(service, **figures) for service, figures in found.items())


def certified(results: Sequence[CapacityResult]) -> tuple[Limit, ...]:
    """The load that each service is certified for."""
    return _limits(results, "certified_rps", "certified {}/s")


def load_limits(results: Sequence[CapacityResult]) -> tuple[Limit, ...]:
    """Loads that are certified, and those that were refuted."""
    return (*certified(results), *_limits(results, "refuted_rps", "refuted {}/s"))


def batch_limits(results: Sequence[CapacityResult]) -> tuple[Limit, ...]:
    """The batch that was chosen, and the largest that keeps the contract."""
    return (*_limits(results, "chosen_batch", "chosen batch {}"), *_limits(results, "feasible_max", "at most {}"))


def _limits(results: Sequence[CapacityResult], figure: str, text: str) -> tuple[Limit, ...]:
    found = ((result.service, getattr(result, figure)) for result in results)
    return tuple(Limit(service, "", value, text.format(plain(value))) for service, value in found if value is not None)


def _read(argument: str, services: Sequence[str]) -> tuple[str, Mapping[str, Decimal]]:
    service, is_named, path = argument.rpartition("=")
    if not is_named and len(services) > 1:
        raise UsageError(f"--capacity {argument}: whose is it? Write SERVICE={argument}, of {', '.join(services)}")
    service = service or services[0]
    if service not in services:
        raise UsageError(f"--capacity {argument}: no service {service} in slo.yaml: use {', '.join(services)}")
    figures = _figures(Path(path))
    if not figures:
        raise UsageError(f"--capacity {path}: has none of {', '.join(FIGURES)}: give the JSON of firsttoken capacity")
    return service, figures


def _figures(path: Path) -> Mapping[str, Decimal]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal, parse_int=Decimal)
    except OSError as error:
        raise UsageError(f"--capacity {path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"--capacity {path}: no JSON: give the file that firsttoken capacity wrote") from None
    if not isinstance(found, dict):
        return {}
    values = {key: found.get(key) for key in FIGURES}
    return {key: value for key, value in values.items() if isinstance(value, Decimal) and value > 0}
