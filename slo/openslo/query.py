"""What a PromQL query measures, as far as slo.yaml can promise it.

A query is read for the metrics that it selects and for their matchers, not evaluated: a latency is a histogram's bucket
at one edge, availability a counter told apart by its status, an engine's state a gauge. Names decide which latency it
is, by the words that inference servers and web frameworks use. What else a selector asks for is dropped and said.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from slo.openslo.promise import Measure, UncarriedError
from slo.quantity import duration_text, percent_text, plain
from slo.signals import MODEL_LABEL, SLO_EVENTS

_STRING = r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`'
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^()]*\)")
_SELECTOR = re.compile(rf"([a-zA-Z_:][\w:]*)(?![\w:])\s*(?:\{{((?:[^{{}}\"'`]|{_STRING})*)\}})?(?!\s*\()")
_MATCHER = re.compile(rf"([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*({_STRING})")
_QUANTILE = re.compile(r"\bhistogram_quantile\s*\(\s*([\d.]+)\s*,")
_TEMPLATE = re.compile(r"\{\{[^{}]*\}\}|\$\{?\w+\}?")
_RANGE = re.compile(r"\[[^\[\]]*\]")
_WORDS = frozenset({"and", "or", "unless", "bool", "offset", "inf", "nan"})
_EDGE = "le"
MAX_QUERY_CHARS = 20_000
MAX_EDGE = Decimal(10**9)
"""In whatever unit: an exponent can write a number that is longer than memory."""
MODELS = frozenset({MODEL_LABEL, "model"})
STATUS = frozenset({
    "code", "status", "status_code", "http_code", "http_status", "response_code", "grpc_code", "outcome",
    "finished_reason", "result", "err",
})  # fmt: skip
"""Labels by which counters tell good answers from bad ones."""

LATENCIES = (
    ("ttft", re.compile(r"time_to_first_(token|byte|chunk)|first_response|ttft")),
    ("", re.compile(r"inter_?token|(^|[_:])itl([_:]|$)")),
    ("tpot", re.compile(r"time_per_output_token|(^|[_:])tpot([_:]|$)")),
    ("e2e", re.compile(r"e2e|duration|latency|response_time|request_time|total_time")),
)
"""Which latency a metric is, by its name, the first that fits; '' for one that is none of a request."""
STATES = (
    (
        "kv_occupancy",
        re.compile(r"(kv|gpu)_?cache.*(usage|utili[sz]ation|occupancy)|token_usage|kv_cache_block_metrics"),
    ),
    ("queue", re.compile(r"waiting|queue_size|queue_reqs|queued_requests|requests_deferred|pending_request")),
)
UNITS = (
    (re.compile(r"milliseconds|_ms(_|$)"), Decimal("0.001")),
    (re.compile(r"microseconds|_us(_|$)"), Decimal("0.000001")),
)


@dataclass(frozen=True, slots=True)
class Selector:
    """One metric that a query selects, with its matchers: label, operator, value."""

    name: str
    matchers: Sequence[tuple[str, str, str]]

    @property
    def is_bucket(self) -> bool:
        return self.name.endswith("_bucket") and any(label == _EDGE for label, _, _ in self.matchers)


def selectors(query: str) -> list[Selector]:
    """The metrics that a query selects, in their order. Raises UncarriedError for one that is too long to be read."""
    if len(query) > MAX_QUERY_CHARS:
        raise UncarriedError(f"has a query of more than {MAX_QUERY_CHARS} characters")
    text = _GROUPING.sub(" ", _RANGE.sub(" ", _TEMPLATE.sub("5m", query)))
    return [
        Selector(found[1], [(m[1], m[2], _unquoted(m[3])) for m in _MATCHER.finditer(found[2] or "")])
        for found in _SELECTOR.finditer(text)
        if found[1].lower() not in _WORDS and not _is_number_unit(text, found.start())
    ]


def _is_number_unit(text: str, at: int) -> bool:
    """Whether a word is the unit or exponent of a number, as in `5m` and `1e3`."""
    return at > 0 and (text[at - 1].isdigit() or text[at - 1] == ".")


def _unquoted(text: str) -> str:
    return text[1:-1] if text[0] == "`" else re.sub(r"\\(.)", r"\1", text[1:-1])


def of_ratio(*, good: str = "", bad: str = "", total: str) -> Measure:
    """What a ratio of good or of bad events, one of the two, to all events measures. Raises UncarriedError."""
    counted, everything = selectors(good or bad), selectors(total)
    if not counted or not everything:
        raise UncarriedError("its queries select no metric that could be recognised")
    if any(one.name in (SLO_EVENTS.prometheus, SLO_EVENTS.name) for one in counted):
        raise UncarriedError("reads counters of a slo.yaml: import nothing, use that file")
    notes = list(_notes([*counted, *everything]))
    model = _model([*counted, *everything], notes)
    if buckets := [one for one in counted if one.is_bucket]:
        measure = _latency(buckets, model, notes)
        if ("-" in re.sub(_STRING, "", good or bad)) != bool(bad):
            raise UncarriedError("counts what is above an edge as good, and thresholds here are upper limits")
        return measure
    if any(_is_status(one) for one in counted):
        notes.append(
            "bad is by outcome here: errors, refusals for overload and timeouts, whatever the query's statuses"
        )
        return Measure("availability", model=model, notes=tuple(notes))
    names = ", ".join(sorted({one.name for one in counted}))
    raise UncarriedError(f"{names} is neither a bucket of a latency nor a counter told apart by status or error")


def _latency(buckets: Sequence[Selector], model: str | None, notes: list[str]) -> Measure:
    edges = {(one.name, op, value) for one in buckets for label, op, value in one.matchers if label == _EDGE}
    finite = {(name, op, value) for name, op, value in edges if value.lstrip("+").lower() != "inf"}
    if len(finite) != 1:
        raise UncarriedError("reads several edges of histograms, and one threshold is needed")
    ((name, operator, text),) = finite
    signal = _latency_signal(name)
    if operator not in ("=", "=~"):
        raise UncarriedError(f"selects edges that are not {text}: name the one that is promised")
    threshold = duration_text(_seconds(name, text.replace("\\", ""), notes))
    if any(_is_status(one) for one in buckets):
        notes.append("answers of some statuses were left out of the latency: here errors before the threshold are bad")
    return Measure(signal, threshold, model, notes=tuple(notes))


def _latency_signal(name: str) -> str:
    signal = next((signal for signal, words in LATENCIES if words.search(name)), None)
    if signal is None:
        raise UncarriedError(f"{name} is no latency whose name is known")
    if not signal:
        raise UncarriedError(f"{name} is a time between two tokens, and tpot is one of a whole request")
    return signal


def _seconds(name: str, text: str, notes: list[str]) -> Decimal:
    value = _number(text)
    if value is None or not 0 < value < MAX_EDGE:
        raise UncarriedError(f"{text} is no edge of a histogram that can be read")
    for words, factor in UNITS:
        if words.search(name):
            return value * factor
    if "seconds" not in name and "duration" not in name:
        notes.append(f"{name} names no unit: {text} is taken as seconds")
    return value


def _number(text: str) -> Decimal | None:
    """A finite number as Prometheus or a person writes it; None for other text."""
    try:
        found = Decimal(text)
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def of_threshold(query: str, operator: str, value: Decimal) -> Measure:
    """What a query that must stay under a value measures; `operator` is OpenSLO's `op`. Raises UncarriedError."""
    if operator not in ("lt", "lte"):
        raise UncarriedError(f"must stay above its value ({operator or 'no op'}), and thresholds here are upper limits")
    found = selectors(query)
    notes = list(_notes(found))
    model = _model(found, notes)
    if quantile := _QUANTILE.search(query):
        return _quantile(_number(quantile[1]), value, found, model, notes=notes)
    for one in found:
        for signal, words in STATES:
            if words.search(one.name):
                return Measure(signal, _state(signal, value, notes), model, notes=tuple(notes))
    if any(one.name.endswith("_sum") for one in found):
        raise UncarriedError("holds a mean against a value, which says nothing of a share of requests")
    names = ", ".join(sorted({one.name for one in found})) or "it"
    raise UncarriedError(f"{names} is neither a quantile of a latency nor a state of an engine")


def _quantile(
    share: Decimal | None, value: Decimal, found: Sequence[Selector], model: str | None, *, notes: list[str]
) -> Measure:
    buckets = [one for one in found if one.name.endswith("_bucket")]
    if not buckets or share is None or not 0 < share < 1:
        raise UncarriedError("takes a quantile of something that is no classic histogram")
    signal, threshold = _latency_signal(buckets[0].name), duration_text(_seconds(buckets[0].name, str(value), notes))
    notes.append(
        f"promised was how often a quantile is under {threshold}; here it is that {percent_text(share)} of requests are"
    )
    return Measure(signal, threshold, model, share, tuple(notes))


def _state(signal: str, value: Decimal, notes: list[str]) -> str:
    if signal == "queue":
        return plain(value)
    if value > 1:
        notes.append(f"{plain(value)} of a cache is taken as {plain(value)} %")
        return f"{plain(value)}%"
    return percent_text(value)


def _is_status(one: Selector) -> bool:
    named = re.search(r"error|fail|success|rejected|exceptions|5xx", one.name) is not None
    return named or any(label in STATUS for label, _, _ in one.matchers)


def _model(found: Iterable[Selector], notes: list[str]) -> str | None:
    """The one model that the selectors name."""
    asked = {(op, value) for one in found for label, op, value in one.matchers if label in MODELS}
    named = {value for op, value in asked if op == "=" and value}
    if len(named) == 1 and len(asked) == 1:
        return named.pop()
    if asked:
        shown = ", ".join(sorted(f"model{op}{value}" for op, value in asked))
        notes.append(f"{shown} is not carried over: write match.model by hand")
    return None


def _notes(found: Iterable[Selector]) -> Iterator[str]:
    """What selectors ask for that a sidecar knows by itself, or does not know at all."""
    dropped = {
        f"{label}{op}{value}"
        for one in found
        for label, op, value in one.matchers
        if label not in {_EDGE} | MODELS | STATUS and value not in ("", ".*", ".+")
    }
    if dropped:
        yield f"{', '.join(sorted(dropped))} is not carried over: a sidecar counts all that passes by it"
