"""A report as one HTML document, in light and dark. No script, no font, no other file."""

from collections.abc import Sequence
from html import escape

from capacity.report.chart import Chart
from capacity.report.drawing import svg
from capacity.report.page import Facts, Page, Part, Table
from capacity.report.style import STYLE


def html(page: Page) -> str:
    """The document."""
    body = "\n".join(_part(part) for part in page.parts)
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    title = escape(page.title)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{title}</title><style>{STYLE}</style></head>\n'
        f'<body><header class="{page.mood}"><p class="quiet">{title}</p><h1>{escape(page.verdict)}</h1></header>\n'
        f"<main>{body}</main></body></html>\n"
    )


def _part(part: Part) -> str:
    if isinstance(part, Chart):
        return _card(part.title, svg(part), part.says, kind="chart")
    if isinstance(part, Table):
        return _card(part.title, _table(part), part.says, kind="table")
    if isinstance(part, Facts):
        pairs = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in part.pairs)
        return _card(part.title, f'<dl class="{"large" if part.are_large else "small"}">{pairs}</dl>', kind="facts")
    if part.is_code:
        return _card(part.title, f"<pre>{escape(chr(10).join(part.lines))}</pre>", kind="words")
    return _card(part.title, "".join(f"<p>{escape(line)}</p>" for line in part.lines), kind="words")


def _card(title: str, inner: str, says: str = "", *, kind: str) -> str:
    heading = f"<h2>{escape(title)}</h2>" if title else ""
    below = f'<p class="says">{escape(says)}</p>' if says else ""
    return f'<section class="{kind}">{heading}{inner}{below}</section>'


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in table.headings)
    notes = table.notes or [""] * len(table.rows)
    rows = "".join(
        _row(row, note, is_marked=number in table.marked)
        for number, (row, note) in enumerate(zip(table.rows, notes, strict=True))
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _row(row: Sequence[str], note: str, *, is_marked: bool) -> str:
    kinds = " ".join(["marked"] * is_marked + ["noted"] * bool(note))
    cells = "".join(f"<td>{escape(cell)}</td>" for cell in row)
    below = f'<tr class="note"><td colspan="{len(row)}">{escape(note)}</td></tr>' if note else ""
    return (f'<tr class="{kinds}">' if kinds else "<tr>") + cells + "</tr>" + below
