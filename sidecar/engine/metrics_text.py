"""A page of metrics, Prometheus text 0.0.4 or OpenMetrics, read as it really comes.

Engines write `-nan`, CRLF line ends, exemplars, timestamps, labels without order, and label values with quotes that
nobody escaped; one bad line must not cost the page. A sample that is not a finite number, or a line that cannot be
read, is counted in `dropped`.
"""

import math
import re
from collections.abc import Container
from dataclasses import dataclass

Labels = dict[str, str]

MAX_SAMPLES = 20_000
MAX_LINE_CHARS = 8192  # a longer line is dropped: engines write some hundred, and reading one blocks all else
MAX_KNOWN = 20_000  # texts before a value that are known again; beyond it all are read anew
MAX_KNOWN_CHARS = 1024  # a longer text is read anew each time

# A closing quote is one after which the next label or the end of the labels comes: others belong to the value.
# A blank must have one place to stand in each of these: where it had two, a long run of blanks would take its square.
_COMMA = r"(?:\s*,)?\s*"
_NEXT_LABEL = r"\s*,\s*[a-zA-Z_]\w*\s*=\s*\""
_END_OF_LABELS = rf"{_COMMA}\}}\s*[-+\dNnIi]"
_VALUE = rf"\"(?P<value>(?:\\.|[^\"\\]|\"(?!{_NEXT_LABEL}|{_END_OF_LABELS}))*)\""
_LABEL = re.compile(rf"{_COMMA}(?P<key>[a-zA-Z_]\w*)\s*=\s*{_VALUE}")
_NAME = re.compile(r"[a-zA-Z_:][\w:.]*")
_OPEN = re.compile(r"\s*\{")
_CLOSE = re.compile(rf"{_COMMA}\}}")
_NUMBER = re.compile(r"\s*(?P<number>\S+)(?:\s+-?[\d.]+)?\s*(?:#.*)?$")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPED = {"n": "\n"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One finite value of a series."""

    labels: Labels
    value: float


@dataclass(frozen=True, slots=True)
class Page:
    """The samples of a page by metric name, and how many were dropped."""

    samples: dict[str, list[Sample]]
    dropped: int

    def __contains__(self, name: str) -> bool:
        return name in self.samples


def read_page(text: bytes, wanted: Container[str] | None = None) -> Page:
    """The samples of a page; with `wanted`, only of these metrics (of the rest the values alone are checked)."""
    return PageReader(wanted).read(text)


class PageReader:
    """Reads the pages of one server, one after another.

    They differ in little but their values: what stands before a value is understood once, and known again by its text.
    """

    def __init__(self, wanted: Container[str] | None = None) -> None:
        self._wanted = wanted
        self._known: dict[str, tuple[str, Labels] | None] = {}  # None: of no interest

    def read(self, text: bytes) -> Page:
        """The samples of a page, of the wanted metrics."""
        samples: dict[str, list[Sample]] = {}
        dropped = kept = 0
        for raw in text.decode("utf-8", "replace").split("\n"):
            line = raw.strip()
            if not line or line[0] == "#":
                continue
            series, value = self._line(line) if len(line) <= MAX_LINE_CHARS else (None, None)
            if value is None or (series is not None and kept == MAX_SAMPLES):
                dropped += 1
            elif series is not None:
                kept += 1
                samples.setdefault(series[0], []).append(Sample(series[1], value))
        return Page(samples, dropped)

    def _line(self, line: str) -> tuple[tuple[str, Labels] | None, float | None]:
        """The series of a line, None when nobody wants it; and its value, None when there is none."""
        head, _, written = line.rpartition(" ")
        if head in self._known:
            return self._known[head], _number(written)
        named = _NAME.match(line)
        if named is None:
            return None, None
        if self._wanted is not None and named[0] not in self._wanted:
            if head == named[0] or (head[-1:] == "}" and "#" not in head):  # no timestamp, no exemplar
                self._know(head, None)
            return None, _number(written)
        labels, end = _labels(line, named.end())
        value = None if end is None else _NUMBER.match(line, end)
        series = named[0], labels
        if end == len(head):
            self._know(head, series)
        return series, None if value is None else _number(value["number"])

    def _know(self, head: str, series: tuple[str, Labels] | None) -> None:
        if len(head) > MAX_KNOWN_CHARS:
            return
        if len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[head] = series


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _labels(line: str, at: int) -> tuple[Labels, int | None]:
    """The labels that stand behind the name, which ends at `at`, and where they end; None when they do not."""
    labels: Labels = {}
    if (opened := _OPEN.match(line, at)) is not None:
        at = opened.end()
        while (label := _LABEL.match(line, at)) is not None:
            labels[label["key"]] = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), label["value"])
            at = label.end()
        close = _CLOSE.match(line, at)
        return labels, None if close is None else close.end()
    return labels, at
