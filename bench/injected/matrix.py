"""What was said of which: the confusion matrix, and the promises that it must keep. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from injected.episode import Outcome
from injected.incidents import KINDS

RIGHT_SHARE = 0.9
UNKNOWN, SILENT = "unknown", ""
FAULTS = tuple(kind.name for kind in KINDS if kind.is_fault)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One promise, and whether it was kept."""

    text: str
    kept: bool

    def __str__(self) -> str:
        return f"{'kept    ' if self.kept else 'NOT KEPT'}  {self.text}"


def lines(outcomes: Sequence[Outcome], *, markdown: bool = False) -> Iterator[str]:
    """The matrix: a row a kind with and without background, a column for each cause that was given."""
    head, rows = table(outcomes)
    if markdown:
        yield f"| {' | '.join(head)} |"
        yield f"|---{'|---:' * (len(head) - 1)}|"
        yield from (f"| {' | '.join(row)} |" for row in rows)
        return
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    for row in (head, *rows):
        _, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join((row[0].ljust(widths[0]), *rest))


def table(outcomes: Sequence[Outcome]) -> tuple[list[str], list[list[str]]]:
    """Head and rows."""
    rights = [kind.right for kind in KINDS if any(one.right == kind.right for one in outcomes)]
    wrong = sorted({one.said for one in outcomes} - {*rights, UNKNOWN, SILENT})
    causes = [*rights, *wrong, UNKNOWN, SILENT]
    rows = []
    for kind in KINDS:
        for changes in (False, True):
            mine = [one for one in outcomes if one.kind == kind.name and (one.background != 1) == changes]
            if mine:
                said = Counter(one.said for one in mine)
                right = sum(one.is_right for one in mine)
                name = f"{kind.name}{', load changes' if changes else ''}"
                rows.append([name, *(str(said[cause] or "·") for cause in causes), f"{right}/{len(mine)}"])
    return ["fault", *rights, *wrong, UNKNOWN, "no alert", "right"], rows


def verdicts(outcomes: Sequence[Outcome]) -> list[Verdict]:
    """The promises, of the faults that were played."""
    found = []
    for what, mine in (
        ("faults of the server", [one for one in outcomes if one.kind in FAULTS]),
        ("other troubles", [one for one in outcomes if one.kind not in FAULTS]),
    ):
        if mine:
            right, wrong = sum(one.is_right for one in mine), [one for one in mine if _is_wrong(one)]
            told = f"{right} of {len(mine)} {what} have their cause right, {RIGHT_SHARE:.0%} must"
            found.append(Verdict(told, right >= RIGHT_SHARE * len(mine)))
            found.append(Verdict(f"{len(wrong)} of {len(mine)} have a wrong one, none may", not wrong))
    again = sum(one.tries > 1 for one in outcomes)
    if again:
        found.append(Verdict(f"{again} were played again: an alert came before what was done could show", True))
    silent = sum(one.said == SILENT for one in outcomes)
    found.append(Verdict(f"{len(outcomes) - silent} of {len(outcomes)} were told by an alert, all must be", not silent))
    return found


def _is_wrong(one: Outcome) -> bool:
    return one.said not in (UNKNOWN, SILENT, one.right)
