"""A report as one picture, for where no file with markup can go: the same parts, laid out here and drawn by resvg.

The layout knows no font: text is taken to be as wide as in the widest of those that the style names, so nothing
overlaps and some lines end early. The picture is as wide as its widest table needs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from textwrap import wrap

from capacity.report import drawing
from capacity.report.chart import Chart
from capacity.report.page import Facts, Page, Part, Table, Words
from capacity.report.style import picture_style

LEAST_WIDTH, MARGIN, GAP, PAD = 1160.0, 28.0, 14.0, 20.0
LINE = 20.0
GLYPH, LARGE_GLYPH, BOLD_GLYPH = 7.8, 14.5, 8.9
"""Width of one character of ordinary text, of the verdict or a large value, and of what is bold, on average."""
TITLE_LINE, VERDICT_LINE = 26.0, 32.0
LEAST_FACT = 330.0
CELL_GAP = 16.0


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the picture drawn from its own upper left corner."""

    height: float
    drawn: str

    def at(self, x: float, y: float) -> str:
        return f'<g transform="translate({x:.1f} {y:.1f})">{self.drawn}</g>'


def picture(page: Page) -> str:
    """The page as SVG."""
    tables = (sum(_widths(part)) for part in page.parts if isinstance(part, Table))
    width = max([LEAST_WIDTH, *(table + 2 * (MARGIN + PAD) for table in tables)])
    inner = width - 2 * MARGIN
    y, drawn = MARGIN, list[str]()
    for row in (_head(page, inner), *_rows(page.parts, inner)):
        drawn.append(row.at(MARGIN, y))
        y += row.height + GAP
    size = f'width="{width:.0f}" height="{y - GAP + MARGIN:.0f}"'
    begin = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{picture_style()}</style>'
    return f'{begin}<rect class="page" {size}/>{"".join(drawn)}</svg>'


def _head(page: Page, width: float) -> Block:
    lines = _wrapped(page.verdict, width, LARGE_GLYPH)
    drawn = [_text(0, 14, page.title, "quiet")]
    drawn += [_text(0, 46 + VERDICT_LINE * n, line, f"verdict {page.mood}") for n, line in enumerate(lines)]
    return Block(28 + VERDICT_LINE * len(lines), "".join(drawn))


def _rows(parts: Sequence[Part], width: float) -> Iterator[Block]:
    """Parts from top to bottom; two charts that follow each other stand side by side."""
    half = (width - GAP) / 2
    left: Block | None = None
    for part in parts:
        if isinstance(part, Chart):
            drawn = _card(part.title, _chart(part, half - 2 * PAD), part.says, half)
            if left is None:
                left = drawn
                continue
            yield Block(max(left.height, drawn.height), left.drawn + drawn.at(half + GAP, 0))
            left = None
            continue
        if left is not None:
            yield left
            left = None
        yield _part(part, width)
    if left is not None:
        yield left


def _part(part: Facts | Table | Words, width: float) -> Block:
    inner = width - 2 * PAD
    if isinstance(part, Table):
        return _card(part.title, _table(part, inner), part.says, width)
    if isinstance(part, Facts):
        return _card(part.title, _large(part, inner) if part.are_large else _small(part, inner), "", width)
    return _card(part.title, _words(part.lines, inner, is_code=part.is_code), "", width)


def _card(title: str, inner: Block, says: str, width: float) -> Block:
    y, drawn = PAD, list[str]()
    if title:
        drawn.append(_text(PAD, y + 14, title, "title"))
        y += TITLE_LINE
    drawn.append(inner.at(PAD, y))
    y += inner.height
    if says:
        below = _lines(_wrapped(says, width - 2 * PAD), "says")
        drawn.append(below.at(PAD, y + 6))
        y += below.height + 6
    height = y + PAD - 4
    frame = f'<rect class="card" width="{width:.1f}" height="{height:.1f}" rx="12"/>'
    return Block(height, frame + "".join(drawn))


def _chart(chart: Chart, width: float) -> Block:
    if chart.is_empty:
        return _lines([drawing.NOTHING], "quiet")
    height = width * drawing.HEIGHT / drawing.WIDTH
    view = f'viewBox="0 0 {drawing.WIDTH} {drawing.HEIGHT}"'
    drawn = [f'<svg width="{width:.1f}" height="{height:.1f}" {view}>{drawing.marks_of(chart)}</svg>']
    x, y = 0.0, height + 6
    for mark in filter(lambda one: one.name, chart.marks):
        wide = 34 + GLYPH * len(mark.name)
        if x and x + wide > width:
            x, y = 0.0, y + LINE
        drawn.append(f'<g transform="translate({x:.1f} {y + 3:.1f})">{drawing.swatch(mark)}</g>')
        drawn.append(_text(x + 16, y + 13, mark.name, "quiet"))
        x += wide
    return Block(y + LINE, "".join(drawn))


def _widths(table: Table) -> list[float]:
    """Of each column with the gap after it."""
    columns = zip(table.headings, *table.rows, strict=True)
    return [max(len(cell) for cell in column) * BOLD_GLYPH + CELL_GAP for column in columns]


def _table(table: Table, width: float) -> Block:
    widths = _widths(table)
    spare = max(width - sum(widths), 0.0) / len(widths)
    ends = [sum(widths[: n + 1]) + spare * (n + 1) for n in range(len(widths))]
    y, drawn = 0.0, [_cells(table.headings, ends, 14, "heading")]
    notes = table.notes or [""] * len(table.rows)
    for number, (row, note) in enumerate(zip(table.rows, notes, strict=True)):
        y += LINE + 4
        drawn.append(f'<line class="edge" x1="0" x2="{width:.1f}" y1="{y - 2:.1f}" y2="{y - 2:.1f}"/>')
        drawn.append(_cells(row, ends, y + 14, "marked" if number in table.marked else ""))
        if note:
            y += LINE - 3
            drawn.append(_text(0, y + 13, note, "note"))
    return Block(y + LINE + 2, "".join(drawn))


def _cells(row: Sequence[str], ends: Sequence[float], y: float, kind: str) -> str:
    """Cells that end where their column does; those of the first and the last column begin where it begins."""
    drawn = []
    for number, cell in enumerate(row):
        is_left = number in (0, len(row) - 1)
        x = 0.0 if not number else ends[number - 1] + CELL_GAP / 2 if is_left else ends[number] - CELL_GAP / 2
        drawn.append(_text(x, y, cell, kind, anchor="start" if is_left else "end"))
    return "".join(drawn)


def _large(facts: Facts, width: float) -> Block:
    """Names above large values in as many columns as the longest value lets stand side by side, filled row by row."""
    widest = max(len(value) * LARGE_GLYPH + CELL_GAP for _, value in facts.pairs)
    columns = min(max(int(width // widest), 1), len(facts.pairs))
    each, drawn = width / columns, list[str]()
    for number, (name, value) in enumerate(facts.pairs):
        x, y = each * (number % columns), 56.0 * (number // columns)
        drawn += [_text(x, y + 12, name, "name"), _text(x, y + 38, value, "value")]
    return Block(56.0 * -(-len(facts.pairs) // columns) - 8, "".join(drawn))


def _small(facts: Facts, width: float) -> Block:
    """Names above their values in as many columns as there is room for, filled row by row."""
    columns = max(int(width // LEAST_FACT), 1)
    each = width / columns
    y, drawn = 0.0, list[str]()
    for begin in range(0, len(facts.pairs), columns):
        row = [(name, _wrapped(value, each - CELL_GAP)) for name, value in facts.pairs[begin : begin + columns]]
        for place, (name, lines) in enumerate(row):
            drawn.append(_text(each * place, y + 12, name, "name"))
            drawn.append(_lines(lines, "").at(each * place, y + 17))
        y += 17 + LINE * max(len(lines) for _, lines in row) + 8
    return Block(max(y - 8, 0.0), "".join(drawn))


def _words(lines: Iterable[str], width: float, *, is_code: bool) -> Block:
    return _lines([part for line in lines for part in _wrapped(line, width)], "code" if is_code else "")


def _lines(lines: Sequence[str], kind: str) -> Block:
    return Block(LINE * len(lines), "".join(_text(0, 14 + LINE * n, line, kind) for n, line in enumerate(lines)))


def _wrapped(text: str, width: float, glyph: float = GLYPH) -> list[str]:
    return wrap(text, max(int(width / glyph), 1)) or [""]


def _text(x: float, y: float, text: str, kind: str, *, anchor: str = "start") -> str:
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    of_kind = f' class="{kind}"' if kind else ""
    at_end = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{of_kind}{at_end}>{escape(shown)}</text>'
