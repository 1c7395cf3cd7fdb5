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

# A closing quote is one after which the next label or the end of the labels comes: others belong to the value.
_NEXT_LABEL = r"\s*,\s*[a-zA-Z_]\w*\s*=\s*\""
_END_OF_LABELS = r"\s*,?\s*\}\s*[-+\dNnIi]"
_VALUE = rf"\"(?P<value>(?:\\.|[^\"\\]|\"(?!{_NEXT_LABEL}|{_END_OF_LABELS}))*)\""
_LABEL = re.compile(rf"\s*,?\s*(?P<key>[a-zA-Z_]\w*)\s*=\s*{_VALUE}")
_NAME = re.compile(r"[a-zA-Z_:][\w:.]*")
_OPEN = re.compile(r"\s*\{")
_CLOSE = re.compile(r"\s*,?\s*\}")
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
    samples: dict[str, list[Sample]] = {}
    dropped = kept = 0
    for raw in text.decode("utf-8", "replace").split("\n"):
        line = raw.strip()
        if not line or line[0] == "#":
            continue
        named = _NAME.match(line)
        name = "" if named is None else named[0]
        if name and wanted is not None and name not in wanted:
            dropped += _number(line.rpartition(" ")[2]) is None
            continue
        sample = _sample(line, len(name)) if name else None
        kept += sample is not None
        if sample is None or kept > MAX_SAMPLES:
            dropped += 1
        else:
            samples.setdefault(name, []).append(sample)
    return Page(samples, dropped)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _sample(line: str, at: int) -> Sample | None:
    """The labels and the value that stand behind the name, which ends at `at`."""
    labels: Labels = {}
    if (opened := _OPEN.match(line, at)) is not None:
        at = opened.end()
        while (label := _LABEL.match(line, at)) is not None:
            labels[label["key"]] = _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), label["value"])
            at = label.end()
        close = _CLOSE.match(line, at)
        if close is None:
            return None
        at = close.end()
    written = _NUMBER.match(line, at)
    value = None if written is None else _number(written["number"])
    return None if value is None else Sample(labels, value)
