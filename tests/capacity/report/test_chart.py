"""What a chart must have room for."""

from capacity.report.chart import Axis, Band, Chart, Dot, Dots, Line, Rule, places


def chart(*marks: Line | Band | Dots | Rule) -> Chart:
    return Chart("t", Axis("x"), Axis("y"), marks)


def test_every_mark_has_its_places() -> None:
    assert list(places(Line("", [(1, 2), (3, 4)]))) == [(1, 2), (3, 4)]
    assert list(places(Band("", [(1, 2, 5)]))) == [(1, 2), (1, 5)]
    assert list(places(Dots("", [Dot(1, 2, "", 0.5, 3), Dot(4, 5, "")]))) == [(1, 2), (1, 0.5), (1, 3), (4, 5)]
    assert list(places(Rule("", 7))) == []


def test_rules_alone_are_no_chart() -> None:
    assert chart(Rule("", 1)).is_empty
    assert chart(Line("", [])).is_empty
    assert not chart(Rule("", 1), Line("", [(0, 0)])).is_empty
