"""Recorded requests, read from a file: when each came, and how many tokens went in and out.

CSV with a header row, or JSON lines; columns of the traces of Azure, Mooncake, Vidur and BurstGPT are known by name.
A ServeGen client is a file of rates without a header (start, rate, its variation, family and its two parameters):
requests are drawn from it, window by window, always the same ones.
"""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import TextIO

from capacity.errors import WorkloadError
from capacity.schedule import MAX_TOKENS

INPUT = ("ContextTokens", "input_length", "in_tok", "i", "num_prefill_tokens", "Request tokens", "input_tokens")
OUTPUT = ("GeneratedTokens", "output_length", "out_tok", "o", "num_decode_tokens", "Response tokens", "output_tokens")
TIME_S: Mapping[str, float] = {"t_ms": 0.001, "t": 0.001, "timestamp": 0.001, "Timestamp": 1.0, "time_s": 1.0}
"""Columns of time with their unit in seconds; TIMESTAMP is a date and time of day."""
DATE = "TIMESTAMP"
UNSAID = (None, "")
"""What stands in a row that does not say how long its request is."""
MAX_ROWS = 2_000_000
FAMILIES = ("Gamma", "Weibull")
RATE_WINDOW_S = 600.0
LEAST_SHAPE = 0.01
"""Of a family: below it all gaps but a few are 0, and the others beyond all numbers."""
MAX_LINE_CHARS = 1024 * 1024
RATE_FIELDS = 6


@dataclass(frozen=True, slots=True)
class Row:
    """One request; `at_s` counts from anywhere, and None is what the trace does not say."""

    at_s: float | None
    tokens_in: int | None
    tokens_out: int | None


def read(flag: str, path: Path) -> list[Row]:
    """The requests of a trace in the order of the file; `flag` named it. Raises WorkloadError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = _lines(file, f"{flag} {path}")
            rows = list(_rows(lines, f"{flag} {path}", is_json=path.suffix in (".jsonl", ".json")))
    except OSError as error:
        raise WorkloadError(f"{flag} {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise WorkloadError(f"{flag} {path} is not UTF-8 text: unpack it if it is packed") from None
    if not rows:
        raise WorkloadError(f"{flag} {path} holds no requests")
    return rows


def _lines(file: TextIO, named: str) -> Iterator[str]:
    while line := file.readline(MAX_LINE_CHARS + 1):
        if len(line) > MAX_LINE_CHARS:
            raise WorkloadError(f"{named} has a line of more than {MAX_LINE_CHARS:,} characters: it is no trace")
        yield line


def _rows(lines: Iterable[str], named: str, *, is_json: bool) -> Iterator[Row]:
    ahead = iter(lines)
    first = next(ahead, "")
    if not is_json and _is_rate(first):
        rates = [first, *islice(ahead, MAX_ROWS)]
        if len(rates) > MAX_ROWS:
            raise WorkloadError(f"{named} holds more than {MAX_ROWS} rates: use a part of it")
        yield from _drawn(rates, named)
        return
    whole = _chained(first, ahead)
    read_rows: Iterable[Mapping[str, object]] = (
        map(json.loads, filter(str.strip, whole)) if is_json else csv.DictReader(whole)
    )
    head = number = 0 if is_json else 1
    try:
        for row in read_rows:
            if number - head >= MAX_ROWS:
                raise WorkloadError(f"{named} holds more than {MAX_ROWS} requests: use a part of it")
            yield _row(row)
            number += 1
    except (ValueError, TypeError, AttributeError, RecursionError, csv.Error):
        raise WorkloadError(f"{named}: row {number + 1} cannot be read") from None
    except KeyError:
        columns = ", ".join((DATE, *TIME_S, *INPUT))
        raise WorkloadError(f"{named} has none of the columns {columns}") from None


def _chained(first: str, ahead: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from ahead


def _row(row: Mapping[str, object]) -> Row:
    at_s, tokens_in, tokens_out = _time(row), _tokens(row, INPUT), _tokens(row, OUTPUT)
    if at_s is None and not all(any(name in row for name in names) for names in (INPUT, OUTPUT)):
        raise KeyError
    return Row(at_s, tokens_in, tokens_out)


def _tokens(row: Mapping[str, object], names: tuple[str, ...]) -> int | None:
    for name in names:
        if row.get(name) not in UNSAID:
            tokens = int(str(row[name]))
            if not 0 <= tokens <= MAX_TOKENS:
                raise ValueError(name)
            return tokens
    return None


def _time(row: Mapping[str, object]) -> float | None:
    if DATE in row:
        return _moment(str(row[DATE])[:26])
    at_s = next((float(str(row[name])) * unit_s for name, unit_s in TIME_S.items() if name in row), None)
    if at_s is not None and not math.isfinite(at_s):
        raise ValueError(at_s)
    return at_s


def _moment(text: str) -> float:
    """Seconds of a date; without a zone it is UTC, for any other has an hour that comes twice a year."""
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def _is_rate(line: str) -> bool:
    fields = line.strip().split(",")
    return len(fields) == RATE_FIELDS and fields[3] in FAMILIES


def _drawn(lines: list[str], named: str) -> Iterator[Row]:
    """Arrivals with gaps of the family with its parameters, shape and scale, from each window's start to the next."""
    try:
        windows = [(float(f[0]), f[3], float(f[4]), float(f[5])) for f in csv.reader(lines) if float(f[1]) > 0]
    except (ValueError, IndexError):
        raise WorkloadError(f"{named}: a row of rates cannot be read") from None
    if any(not _is_drawable(*window) for window in windows):
        raise WorkloadError(f"{named} has a family other than {' and '.join(FAMILIES)}, or a parameter that is none")
    chance = Random(named.rpartition("/")[2])  # noqa: S311  chance for a load, no secret
    lengths = [b[0] - a[0] for a, b in pairwise(windows) if b[0] > a[0]]
    window_s = min(lengths, default=RATE_WINDOW_S)
    number = 0
    for start_s, family, shape, scale in windows:
        draw = chance.gammavariate if family == "Gamma" else (lambda a, b: chance.weibullvariate(b, a))
        at_s = start_s + draw(shape, scale) * chance.random()
        while at_s < start_s + window_s:
            number += 1
            if number > MAX_ROWS:
                raise WorkloadError(f"{named} makes more than {MAX_ROWS} requests: use a part of it")
            yield Row(at_s, None, None)
            at_s += draw(shape, scale)


def _is_drawable(start_s: float, family: str, shape: float, scale: float) -> bool:
    """Whether gaps can be drawn: from NaN none can, nor from what is infinite."""
    return family in FAMILIES and math.isfinite(start_s) and shape >= LEAST_SHAPE and 0 < scale < math.inf
