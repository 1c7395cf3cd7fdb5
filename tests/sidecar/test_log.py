"""The log's lines, as text and as JSON."""

import json
import logging

import pytest

from sidecar import log
from sidecar.settings import UsageError


@pytest.fixture(autouse=True)
def own_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.root, "handlers", list(logging.root.handlers))
    monkeypatch.setattr(logging.root, "level", logging.root.level)


def test_a_line_can_be_json(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("sidecar", level="warning", form="json")
    logging.getLogger("x").warning("a %s", "b")
    logging.getLogger("x").info("not said")
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert told.pop("at").endswith("Z")
    assert told == {"level": "warning", "program": "sidecar", "message": "a b"}


def test_a_traceback_is_a_field_of_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("sidecar", level="info", form="json")
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        logging.getLogger("x").exception("gone wrong")
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert told["message"] == "gone wrong"
    assert told["error"].startswith("Traceback (most recent call last):\n")
    assert told["error"].endswith("ZeroDivisionError")


def test_a_text_line_says_whose_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    log.set_up("sidecar worker 2", level="info", form="text")
    logging.getLogger("x").info("here")
    assert capsys.readouterr().err == "sidecar worker 2: INFO: here\n"


@pytest.mark.parametrize(
    ("level", "form", "right"), [("loud", "text", "use debug, info, warning or error"), ("info", "xml", "text or json")]
)
def test_other_words_are_refused(level: str, form: str, right: str) -> None:
    with pytest.raises(UsageError, match=right):
        log.set_up("sidecar", level=level, form=form)
