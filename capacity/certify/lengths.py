"""How long prompts and answers are: stated, never guessed, for a capacity is one of a workload.

Either spans by hand, `IN:OUT` in tokens, each `N` or `LOW-HIGH`; or a recorded trace, whose pairs are drawn as they
stand, so that long prompts keep their long or short answers. CSV with a head line, or JSON lines; the columns of the
traces of Azure, Mooncake, Vidur and BurstGPT are known by name.
"""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random

from capacity.errors import WorkloadError
from capacity.schedule import MAX_TOKENS, Span

INPUT = ("ContextTokens", "input_length", "in_tok", "i", "num_prefill_tokens", "Request tokens", "input_tokens")
OUTPUT = ("GeneratedTokens", "output_length", "out_tok", "o", "num_decode_tokens", "Response tokens", "output_tokens")
TIME_S: Mapping[str, float] = {"t_ms": 0.001, "t": 0.001, "timestamp": 0.001, "Timestamp": 1.0, "time_s": 1.0}
"""Columns of time with their unit in seconds; TIMESTAMP is a date and time of day."""
DATE = "TIMESTAMP"
MAX_ROWS = 2_000_000
PEAK_WINDOW_S = 300.0
"""About how long it takes to notice that there is more load, and to start another server."""
PEAK_SHARE = 0.99


@dataclass(frozen=True, slots=True)
class Lengths:
    """`source` as it was written; pairs of tokens in and out that are drawn evenly, or two spans."""

    source: str
    pairs: tuple[tuple[int, int], ...] = ()
    spans: tuple[Span, Span] | None = None
    peak_rps: float | None = None

    def draw(self, chance: Random) -> tuple[int, int]:
        """Tokens in and out of one request."""
        if self.spans is not None:
            return self.spans[0].draw(chance), self.spans[1].draw(chance)
        return chance.choice(self.pairs)

    @property
    def mean(self) -> tuple[float, float]:
        """Mean tokens in and out."""
        if self.spans is not None:
            return (self.spans[0].low + self.spans[0].high) / 2, (self.spans[1].low + self.spans[1].high) / 2
        return sum(pair[0] for pair in self.pairs) / len(self.pairs), sum(p[1] for p in self.pairs) / len(self.pairs)


def lengths(text: str) -> Lengths:
    """The lengths that `IN:OUT` or a trace's path names. Raises WorkloadError."""
    before, colon, after = text.partition(":")
    if colon and not Path(text).exists():
        try:
            return Lengths(text, spans=(_span(before), _span(after)))
        except ValueError:
            raise WorkloadError(
                f"--workload {text} is neither lengths nor a file: write IN:OUT tokens as 512:128 or 100-900:20-200"
            ) from None
    return _recorded(Path(text))


def _span(text: str) -> Span:
    low, _, high = text.partition("-")
    return Span(int(low), int(high or low))


def _recorded(path: Path) -> Lengths:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(_rows(file, is_json=path.suffix in (".jsonl", ".json"), path=path))
    except OSError as error:
        raise WorkloadError(f"--workload {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WorkloadError(f"--workload {path} is not UTF-8 text") from None
    if not rows:
        raise WorkloadError(f"--workload {path} holds no requests")
    pairs = tuple((tokens_in, tokens_out) for _, tokens_in, tokens_out in rows if tokens_in > 0 and tokens_out > 0)
    if not pairs:
        raise WorkloadError(f"--workload {path} holds no request with tokens in and out")
    return Lengths(str(path), pairs=pairs, peak_rps=_peak([at_s for at_s, _, _ in rows if at_s is not None]))


def _rows(lines: Iterable[str], *, is_json: bool, path: Path) -> Iterator[tuple[float | None, int, int]]:
    """Time, tokens in and tokens out of each row."""
    read: Iterable[Mapping[str, object]] = map(json.loads, lines) if is_json else csv.DictReader(lines)
    number = 0
    try:
        for number, row in enumerate(read, 1):
            if number > MAX_ROWS:
                raise WorkloadError(f"--workload {path} holds more than {MAX_ROWS} requests: use a part of it")
            yield _time(row), _tokens(row, INPUT), _tokens(row, OUTPUT)
    except (ValueError, TypeError, AttributeError):
        raise WorkloadError(f"--workload {path}: row {number + 1} cannot be read") from None
    except KeyError as error:
        raise WorkloadError(f"--workload {path} has none of the columns {error.args[0]}") from None


def _tokens(row: Mapping[str, object], names: tuple[str, ...]) -> int:
    for name in names:
        if name in row:
            tokens = int(str(row[name]))
            if not 0 <= tokens <= MAX_TOKENS:
                raise ValueError(name)
            return tokens
    raise KeyError(", ".join(names))


def _time(row: Mapping[str, object]) -> float | None:
    if DATE in row:
        return datetime.fromisoformat(str(row[DATE])[:26]).timestamp()
    return next((float(str(row[name])) * unit_s for name, unit_s in TIME_S.items() if name in row), None)


def _peak(times_s: list[float]) -> float | None:
    """The rate that 99 % of windows of five minutes stay within; of shorter ones where the trace is shorter."""
    ascending = sorted(times_s)
    if len(ascending) < 2 or ascending[-1] <= ascending[0]:
        return None
    span_s = ascending[-1] - ascending[0]
    window_s = min(PEAK_WINDOW_S, span_s)
    rates, first, last = [], 0, 0
    steps = max(math.ceil((span_s - window_s) / (window_s / 30)), 1)
    for step in range(steps):
        begin_s = ascending[0] + step * window_s / 30
        while first < len(ascending) and ascending[first] < begin_s:
            first += 1
        while last < len(ascending) and ascending[last] < begin_s + window_s:
            last += 1
        rates.append((last - first) / window_s)
    return sorted(rates)[max(math.ceil(PEAK_SHARE * len(rates)) - 1, 0)]
