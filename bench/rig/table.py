"""A run's figures as people read them: a block of lines a row, or the table that README.md keeps."""

import statistics
from collections.abc import Iterator

from rig.figures import Comparison, Figures, Row


def table(figures: Figures) -> Iterator[str]:
    """Every row, with a line for each arm."""
    for row in figures.rows():
        yield row.headline
        width = max(map(len, figures.arms(row)))
        for arm in figures.arms(row):
            yield f"  {arm:{width}} {_line(figures, row, arm)}"


def markdown(figures: Figures, arms: list[str]) -> Iterator[str]:
    """The least values: in brackets as so many times the row's base, or as so much over it."""
    yield f"| | {' | '.join(arms)} |"
    yield f"|---{'|---:' * len(arms)}|"
    for row in figures.rows():
        cells = []
        for arm in arms:
            values = figures.values(row, arm)
            cell = f"{min(values):.{0 if min(values) >= 100 else 2}f}" if values else ""
            if (found := _related(figures, row, arm)) is not None:
                cell += f" (x {found.of_least:.2f})" if row.relation == "times" else f" ({found.of_least:+.2f})"
            cells.append(cell)
        yield f"| {row.title}, {row.unit} | {' | '.join(cells)} |"


def _line(figures: Figures, row: Row, arm: str) -> str:
    values = figures.values(row, arm)
    line = f" least {min(values):9.2f}  median {statistics.median(values):9.2f}"
    if (found := _related(figures, row, arm)) is not None:
        by_round = f"by round {found.median:.2f} ({found.low:.2f} to {found.high:.2f})"
        line += f"   {'x' if row.relation == 'times' else 'over'} {row.base} {found.of_least:7.2f}, {by_round}"
    doubts = "; ".join(figures.doubts(row, arm))
    return f"{line}   ! {doubts}" if doubts else line


def _related(figures: Figures, row: Row, arm: str) -> Comparison | None:
    """An arm to its row's base, where that says something."""
    if row.relation == "alone" or arm == row.base:
        return None
    return figures.compared(row, arm, row.base, relation=row.relation)
