"""What slo.yaml promises, as rows that the engine judges by."""

from collections.abc import Iterable, Iterator, Sequence

from collector.clickhouse.engine import Row
from collector.clickhouse.tables import OBJECTIVE
from collector.windowing.windows import LATENCY_SIGNALS
from slo.objective import Match, Objective, Spec

_SERVICE, _WRITTEN = OBJECTIVE.names.index("service"), OBJECTIVE.names.index("written_s")
_SPECIAL = frozenset("\\.^$|()[]{}*+?")
_SPECIAL_IN_SET = frozenset("\\^[]&~")


def rows(specs: Iterable[Spec], *, written_s: int) -> list[Row]:
    """The rows of table `objective`."""
    return [row for spec in specs for row in _of(spec, written_s)]


def told(wanted: Sequence[Row], judging: Iterable[Row]) -> bool:
    """Whether the rows that the engine judges by now are these, as far as their services go."""
    services = {row[_SERVICE] for row in wanted}
    return {_undated(row) for row in wanted} == {_undated(row) for row in judging if row[_SERVICE] in services}


def latest_s(judging: Iterable[Row]) -> int:
    """When the newest of the rows that the engine judges by was written, by whoever's clock."""
    return max((row[_WRITTEN] for row in judging), default=0)


def pattern(glob: str | None) -> str:
    """The regular expression, in RE2's words, that matches what `fnmatch` says a glob does; all names for none."""
    return "" if glob is None else f"\\A(?s:{''.join(_translated(glob))})\\z"


def _of(spec: Spec, written_s: int) -> Iterator[Row]:
    for one in spec.objectives:
        who = spec.service, one.name, written_s, spec.environment, one.hash, one.signal
        threshold_s = float(one.threshold) if one.signal in LATENCY_SIGNALS and one.threshold is not None else 0.0
        promised = threshold_s, float(one.allowed_bad), one.window
        yield (*who, *promised, pattern(one.match.model), int(_readable(one)), int(spec.elastic))


def _readable(objective: Objective) -> bool:
    """Whether a histogram can answer: classes and prompt sizes are not in it, nor is anything but a latency."""
    match: Match = objective.match
    return objective.signal in LATENCY_SIGNALS and match.class_ is None and match.prompt_bytes is None


def _undated(row: Row) -> Row:
    return (*row[:_WRITTEN], *row[_WRITTEN + 1 :])


def _translated(glob: str) -> Iterator[str]:
    at = 0
    while at < len(glob):
        one, at = glob[at], at + 1
        if one == "*":
            yield ".*"
        elif one == "?":
            yield "."
        elif one == "[" and (end := _end_of_set(glob, at)) > 0:
            yield _set(glob[at:end])
            at = end + 1
        else:
            yield f"\\{one}" if one in _SPECIAL else one


def _end_of_set(glob: str, at: int) -> int:
    """Where the set that begins there ends: a bracket that comes first in it is one of its characters."""
    first = at + 1 if glob[at : at + 1] == "!" else at
    return glob.find("]", first + 1)


def _set(inside: str) -> str:
    """A set of characters; its ranges are RE2's too."""
    negated, inside = ("^", inside[1:]) if inside.startswith("!") else ("", inside)
    return f"[{negated}{''.join(map(_in_set, inside))}]"


def _in_set(one: str) -> str:
    return f"\\{one}" if one in _SPECIAL_IN_SET else one
