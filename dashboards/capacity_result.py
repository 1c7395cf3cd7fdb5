"""What `firsttoken capacity` found, as limits that charts draw load and batch against."""

from collections.abc import Sequence

from dashboards.promise import Limit
from slo.capacity_result import CapacityResult
from slo.quantity import plain


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
