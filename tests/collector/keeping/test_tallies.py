"""Counting what became of bodies."""

from collector.keeping.tallies import MAX_REASONS, Tallies
from collector.values.deltas import Deltas, KnownRow
from collector.values.measurement import Tally


def test_reasons_of_drops_are_bounded() -> None:
    tallies = Tallies()
    tallies.drop(Tally(f"reason {number}", 2) for number in range(MAX_REASONS + 7))
    assert len(tallies.dropped) == MAX_REASONS + 1
    assert tallies.dropped["other"] == 14


def test_the_newest_step_is_the_newest_ever_seen() -> None:
    tallies = Tallies()
    tallies.add(Deltas())
    assert tallies.newest_s is None
    for start_s in (20, 10):
        tallies.add(Deltas(known=(KnownRow("", "chat", start_s),), rejected=(Tally("too old", 3),)))
    assert tallies.newest_s == 20
    assert tallies.dropped == {"too old": 6}
