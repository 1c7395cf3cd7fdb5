"""A server's own metrics to one frozen `ServerSample`, whatever engine wrote them.

`read` takes the text of a metrics page and gives what it knows: a value that the page does not tell is None, never 0.
Shares are 0 to 1; one outside is a fault of the map and is dropped, never divided by 100. Of several ranks, counts are
added and shares are the highest (each rank's own stands in `ranks`). `engines` holds the names.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson

from sidecar.engine.engines import ENGINES, LLAMACPP, Candidates, Engine, Series
from sidecar.engine.metrics_text import Page, Sample, read_page

__all__ = [
    "AUTO",
    "ENGINES",
    "Rank",
    "ServerSample",
    "hit_ratio",
    "increase",
    "metrics_path",
    "preempted",
    "read",
    "read_slots",
    "slots_sample",
]

AUTO = "auto"
MAX_RANKS = 256
MAX_MODELS = 64
MAX_VALUE = float(1 << 53)  # beyond it no count is exact, and the wire's integers end soon after
_ROUNDING = 1e-3  # a share this little over 1 is a rounded 1


@dataclass(frozen=True, slots=True)
class Rank:
    """The KV cache of one data-parallel rank."""

    rank: str
    kv_occupancy: float | None
    kv_capacity_tokens: float | None


@dataclass(frozen=True, slots=True)
class ServerSample:
    """What one scrape tells of a server; None where it tells nothing. `ranks` is empty unless there are several;
    `preemptions` has every rank's, since each restarts by itself."""

    engine: str | None
    running: float | None = None
    waiting: float | None = None
    kv_occupancy: float | None = None
    kv_capacity_tokens: float | None = None
    preemptions_total: float | None = None
    preemptions: tuple[tuple[str, float], ...] = ()
    prefix_hits_total: float | None = None
    prefix_queries_total: float | None = None
    prefix_hit_ratio: float | None = None
    ranks: tuple[Rank, ...] = ()
    models: tuple[str, ...] = ()
    dropped: int = 0


def metrics_path(engine: str) -> str | None:
    """Where the engine serves its metrics by default, None when it has none."""
    return ENGINES[engine].metrics_path if engine in ENGINES else "/metrics"


def read(text: bytes, engine: str = AUTO) -> ServerSample:
    """The sample of a metrics page. `engine` is a name of `ENGINES`, or `auto`: the page itself then tells.

    Never fails: of a page that is none, `engine` is None (auto) and all else unknown.
    """
    return sample_of(read_page(text, WANTED), engine)


def sample_of(page: Page, engine: str = AUTO) -> ServerSample:
    """The sample of a page that was read already, of `WANTED` at least."""
    found = _recognised(page) if engine == AUTO else ENGINES.get(engine)
    if found is None:
        return ServerSample(None, dropped=page.dropped)
    return _Reading(page, found).sample()


def _recognised(page: Page) -> Engine | None:
    return next((engine for engine in ENGINES.values() if any(name in page for name in engine.probe)), None)


class _Reading:
    """One page under one engine's map; counts what it drops."""

    def __init__(self, page: Page, engine: Engine) -> None:
        self._page = page
        self._engine = engine
        self._dropped = page.dropped

    def sample(self) -> ServerSample:
        engine = self._engine
        occupancy = self._shares(engine.kv_occupancy)
        capacity = self._counts(engine.kv_capacity_tokens)
        hits, queries = _total(self._counts(engine.prefix_hits)), _total(self._counts(engine.prefix_queries))
        ratio = max(self._shares(engine.prefix_hit_ratio).values(), default=None)
        preemptions = self._counts(engine.preemptions)
        ranks = sorted(set(occupancy) | set(capacity))[:MAX_RANKS]
        return ServerSample(
            engine=engine.name,
            running=_total(self._counts(engine.running)),
            waiting=_total(self._counts(engine.waiting)),
            kv_occupancy=max(occupancy.values(), default=None),
            kv_capacity_tokens=_total(capacity),
            preemptions_total=_total(preemptions),
            preemptions=tuple(preemptions.items()),
            prefix_hits_total=hits,
            prefix_queries_total=queries,
            prefix_hit_ratio=ratio if ratio is not None else _share(hits, queries),
            ranks=tuple(Rank(rank, occupancy.get(rank), capacity.get(rank)) for rank in ranks)
            if len(ranks) > 1
            else (),
            models=self._models(),
            dropped=self._dropped,
        )

    def _counts(self, candidates: Candidates) -> dict[str, float]:
        """By rank, the sum of the first candidate that the page has."""
        return self._first(candidates, sum)

    def _shares(self, candidates: Candidates) -> dict[str, float]:
        """By rank, the highest share of the first candidate that the page has."""
        shares: dict[str, float] = {}
        for rank, value in self._first(candidates, max).items():
            if 0 <= value <= 1 + _ROUNDING:
                shares[rank] = min(value, 1.0)
            else:
                self._dropped += 1
        return shares

    def _first(self, candidates: Candidates, fold: Callable[[Iterable[float]], float]) -> dict[str, float]:
        for series in candidates:
            if found := self._by_rank(series, fold):
                return found
        return {}

    def _by_rank(self, series: Series, fold: Callable[[Iterable[float]], float]) -> dict[str, float]:
        if series.over is not None:
            parts, wholes = self._by_rank(_alone(series), sum), self._by_rank(series.over, sum)
            return {rank: part / wholes[rank] for rank, part in parts.items() if wholes.get(rank)}
        values = {rank: fold(distinct.values()) for rank, distinct in self._distinct(series).items()}
        if series.times is not None:
            factors = self._by_rank(series.times, max)
            return {rank: value * factors[rank] for rank, value in values.items() if rank in factors}
        return values

    def _distinct(self, series: Series) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """By rank, the values of a series; of those that processes tell twice, the highest."""
        name = next((name for name in series.names if name in self._page), None)
        ranks: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        for sample in self._page.samples[name] if name is not None else ():
            value = _value(sample, series)
            if value is None or any(sample.labels.get(key) != wanted for key, wanted in series.match):
                continue
            apart = tuple(
                sorted(item for item in sample.labels.items() if item[0] not in self._engine.duplicate_labels)
            )
            distinct = ranks.setdefault(sample.labels.get(self._engine.rank_label, ""), {})
            distinct[apart] = max(value, distinct.get(apart, value))
        return ranks

    def _models(self) -> tuple[str, ...]:
        names: dict[str, None] = {}
        for series in (*self._engine.running, *self._engine.kv_occupancy):
            for name in series.names:
                for sample in self._page.samples.get(name, ()):
                    model = next((sample.labels[key] for key in self._engine.model_labels if key in sample.labels), "")
                    if model and len(names) < MAX_MODELS:
                        names[model] = None
        return tuple(names)


def _alone(series: Series) -> Series:
    return Series(series.names, series.match, series.label)


def _value(sample: Sample, series: Series) -> float | None:
    if not series.label:
        return sample.value if 0 <= sample.value <= MAX_VALUE else None
    text = sample.labels.get(series.label, "")
    return float(text) if text.isdecimal() and text.isascii() and len(text) < 19 else None


def _total(by_rank: dict[str, float]) -> float | None:
    return sum(by_rank.values()) if by_rank else None


def _share(part: float | None, whole: float | None) -> float | None:
    if part is None or not whole or not 0 <= part <= whole:
        return None
    return part / whole


def _wanted() -> frozenset[str]:
    names: set[str] = set()

    def add(series: Series | None) -> None:
        if series is not None:
            names.update(series.names)
            add(series.times)
            add(series.over)

    for engine in ENGINES.values():
        names.update(engine.probe)
        for candidates in (
            engine.running, engine.waiting, engine.kv_occupancy, engine.kv_capacity_tokens, engine.preemptions,
            engine.prefix_hits, engine.prefix_queries, engine.prefix_hit_ratio,
        ):  # fmt: skip
            for series in candidates:
                add(series)
    return frozenset(names)


WANTED = _wanted()
"""The metrics of a page that a sample is made of."""


def increase(before: float | None, now: float | None) -> float:
    """How much a counter grew between two scrapes; after a restart it counts from 0 again. 0 while unknown."""
    if now is None or before is None:
        return 0.0
    return now - before if now >= before else now


def preempted(before: ServerSample, now: ServerSample) -> float:
    """Preemptions between two scrapes: each rank's increase, so that the restart of one hides nothing of another."""
    known = dict(before.preemptions)
    return sum(increase(known.get(rank), count) for rank, count in now.preemptions)


def hit_ratio(before: ServerSample, now: ServerSample) -> float | None:
    """The prefix cache's hit ratio of the interval between two scrapes; None when nothing was looked up in it."""
    hits = increase(before.prefix_hits_total, now.prefix_hits_total)
    queries = increase(before.prefix_queries_total, now.prefix_queries_total)
    return _share(hits, queries)


def read_slots(body: bytes) -> float | None:
    """KV occupancy from llama.cpp's `/slots`: tokens of slots at work over all slots' context; None when untold."""
    try:
        slots = orjson.loads(body)
        capacity = sum(slot["n_ctx"] for slot in slots)
        used = sum(_slot_tokens(slot) for slot in slots if slot["is_processing"])
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return None
    return min(1.0, used / capacity) if capacity > 0 else None


def slots_sample(body: bytes) -> ServerSample:
    """The sample of `/slots` alone; of what is none, `engine` is None."""
    occupancy = read_slots(body)
    if occupancy is None:
        return ServerSample(None)
    working = sum(bool(slot["is_processing"]) for slot in orjson.loads(body))
    return ServerSample(LLAMACPP.name, running=float(working), kv_occupancy=occupancy)


def _slot_tokens(slot: dict[str, object]) -> int:
    """Tokens that a slot holds. `n_prompt_tokens` is no help where the prompt's parts are told: it was the whole prompt
    once, read or not, and later everything in the slot, the answer too (seen in b11434)."""
    following = slot.get("next_token") or [{}]
    state = following[0] if isinstance(following, list) else following
    decoded = state.get("n_decoded") if isinstance(state, dict) else None
    parts = [slot.get("n_prompt_tokens_cache"), slot.get("n_prompt_tokens_processed")]
    prompt = [slot.get("n_prompt_tokens")] if None in parts else parts
    return sum(count for count in (*prompt, decoded) if isinstance(count, int))
