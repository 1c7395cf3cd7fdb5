"""Which series of events answer for an objective: counts or histograms, by hash, by model and over all (DESIGN 5).

Counts of different hashes judge by different rules and never mix: each hash that is exported now is a track of its
own, and the worst of them speaks for the objective. During a reload there are two for a while; the old one ends
`ACTIVE_S` after its last count.

A model whose counts have ended while its histogram goes on (its sidecar was taken away, its engine is still read) is
read from the histogram again, from when the counts ended on. The two are never added: they may have seen the same
requests. Counts that come again answer again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.windowing.events import ACTIVE_S, COUNTS, EventKey
from collector.windowing.windows import Windows
from slo.objective import Objective, Spec
from slo.signals import ALL_MODELS, SOURCES


@dataclass(frozen=True, slots=True)
class Track:
    """An objective for one model, or `*` for all it matches, at one hash. `basis` is `counts` when every series in it
    was judged at its source, else `histogram`."""

    spec: Spec
    objective: Objective
    environment: str
    model: str
    keys: tuple[EventKey, ...]

    @property
    def basis(self) -> str:
        return COUNTS if all(key.basis == COUNTS for key in self.keys) else "histogram"


def tracks(windows: Windows, spec: Spec, objective: Objective, environment: str) -> dict[str, list[Track]]:
    """The tracks of an objective by model, `*` first; each model has one at least, and `*` is always there."""
    keys = _answering(windows, objective, windows.events.keys(environment, spec.service, objective.name))
    found: dict[str, list[Track]] = {}
    for value in sorted({key.objective_hash for key in keys}) or [objective.hash]:
        held = [key for key in keys if key.objective_hash == value]
        own: dict[str, list[EventKey]] = {ALL_MODELS: held}
        for key in sorted(held):
            own.setdefault(key.model, []).append(key)
        for model, some in own.items():
            found.setdefault(model, []).append(Track(spec, objective, environment, model, tuple(some)))
    return found


def _answering(windows: Windows, objective: Objective, keys: Sequence[EventKey]) -> list[EventKey]:
    """The counts of every active hash, and for a model without any the histogram of its best source."""
    exact = [key for key in keys if key.basis == COUNTS]
    last_s = {key: windows.events.last_s(key) for key in exact}
    latest_s = max(last_s.values(), default=0)
    hashes = {key.objective_hash for key in exact if last_s[key] >= latest_s - ACTIVE_S}
    exact = [key for key in exact if key.objective_hash in hashes]
    counted_s = {key.model: 0 for key in exact}
    for key in exact:
        counted_s[key.model] = max(counted_s[key.model], last_s[key])
    read = [key for key in keys if key.basis != COUNTS and key.objective_hash == objective.hash]
    ended = {key.model for key in read if windows.events.last_s(key) > counted_s.get(key.model, 0) + ACTIVE_S}
    exact = [key for key in exact if key.model not in ended]
    return exact + _best_sources(key for key in read if key.model in ended)


def _best_sources(keys: Iterable[EventKey]) -> list[EventKey]:
    """One key a model: two sources saw the same requests and are never added."""
    best: dict[str, EventKey] = {}
    for key in sorted(keys, key=lambda key: SOURCES.index(key.basis)):
        best.setdefault(key.model, key)
    return [best[model] for model in sorted(best)]
