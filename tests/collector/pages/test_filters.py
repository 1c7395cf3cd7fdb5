"""Which objectives a URL asks for."""

import pytest

from collector.pages.filters import MAX_TEXT, Choices, Filters, choices, read


def row(service: str, objective: str, model: str, state: str) -> dict[str, str]:
    return {"environment": "", "service": service, "objective": objective, "model": model, "state": state}


ROWS = [
    row("chat", "ttft", "*", "ok"),
    row("chat", "ttft", "m", "ok"),
    row("chat", "ttft", "n", "burning"),
    row("chat", "tpot", "*", "ok"),
    row("search", "ttft", "*", "no_data"),
]
ASKED = {
    "nothing: all of it": (Filters(), [0, 1, 2, 3, 4]),
    "a service": (Filters(service="search"), [4]),
    "a model: its rows alone": (Filters(model="n"), [2]),
    "a state that one of the models is in: the whole objective": (Filters(state="burning"), [0, 1, 2]),
    "a state and a model that is in another": (Filters(state="burning", model="m"), []),
    "one that nobody has": (Filters(service="chat", state="exhausted"), []),
}


@pytest.mark.parametrize("case", ASKED)
def test_what_is_asked_for_is_shown(case: str) -> None:
    filters, places = ASKED[case]
    assert filters.chosen(ROWS) == [ROWS[place] for place in places]


def test_filters_are_read_from_a_url_and_written_to_one() -> None:
    assert read({}) == Filters()
    found = read({"service": "chat", "state": "ok", "colour": "blue"})
    assert found == Filters(service="chat", state="ok")
    assert (found.query, Filters().query) == ("?service=chat&state=ok", "")
    assert (found.are_any, Filters().are_any) == (True, False)
    assert len(read({"model": "m" * 9_999}).model) == MAX_TEXT


def test_the_choices_are_what_there_is() -> None:
    assert choices(ROWS) == Choices(["chat", "search"], ["m", "n"])
