"""What a report says, before it is drawn: the verdict first, then what it rests on. `html` and `picture` draw it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from capacity.report.chart import Chart

Mood = Literal["good", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values side by side: figures at the top, or settings at the end."""

    title: str
    pairs: Sequence[tuple[str, str]]
    are_large: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under headings; the numbers of rows that stand out in `marked`. Under each row its note, if there
    are any: words would make a column of their own narrow, and its rows high."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[int] = frozenset()
    says: str = ""
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Words:
    """Paragraphs, or lines to copy where `is_code`."""

    title: str
    lines: Sequence[str]
    is_code: bool = False


Part = Facts | Table | Words | Chart


@dataclass(frozen=True, slots=True)
class Page:
    """A report: `title` names whom it is about, `verdict` what was found, and `mood` whether that is good news."""

    title: str
    verdict: str
    mood: Mood
    parts: Sequence[Part]
