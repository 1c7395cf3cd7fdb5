import logging
import re

import pytest

from sidecar.counting.tally import Tally
from sidecar.judging import faults
from sidecar.judging.faults import Faults, told
from slo.signals import REASON, TELEMETRY_FAULTS


def test_a_fault_ends_there_is_counted_and_told_once_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    tally = Tally(lambda _: ())
    look = Faults(tally).look

    def broken(secret: str) -> None:
        raise KeyError(secret)

    with caplog.at_level(logging.ERROR):
        look(broken, "a prompt")
        look(broken, "a prompt")
    assert tally.total(TELEMETRY_FAULTS, ((REASON, "KeyError"),)) == 2
    (line,) = caplog.messages
    assert re.fullmatch(r"telemetry fault KeyError at .*\.broken:\d+: counted, the request goes on", line)
    assert "a prompt" not in caplog.text


def test_what_went_wrong_first_is_named() -> None:
    tally = Tally(lambda _: ())

    def broken() -> None:
        try:
            raise LookupError
        finally:
            raise ValueError

    Faults(tally).look(broken)
    assert tally.total(TELEMETRY_FAULTS, ((REASON, "LookupError"),)) == 1


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert told(KeyError("a prompt")) == "KeyError at ?"


def test_places_told_have_a_limit(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(faults, "MAX_PLACES_TOLD", 0)
    with caplog.at_level(logging.ERROR):
        Faults(Tally(lambda _: ())).look(lambda: 1 / 0)
    assert caplog.records == []


def test_what_goes_well_is_no_fault_and_gives_its_value() -> None:
    tally = Tally(lambda _: ())
    assert Faults(tally).look(divmod, 7, 3) == (2, 1)
    assert list(tally.totals()) == []


def test_a_fault_gives_nothing() -> None:
    assert Faults(Tally(lambda _: ())).look(divmod, 7, 0) is None
