"""The one place where telemetry may fail: whatever goes wrong in it is counted, and ends there.

A fault is named by its type and its place only, here and in every log line of ours (a message could quote a prompt);
each place is told once.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from sidecar.counting.tally import Tally
from slo.signals import REASON, TELEMETRY_FAULTS

log = logging.getLogger(__name__)

MAX_PLACES_TOLD = 100  # places of faults that are logged; all are counted

R = TypeVar("R")


class Faults:
    """The faults of one process's telemetry."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._told: set[str] = set()

    def look(self, act: Callable[..., R], *args: object) -> R | None:
        """What telemetry has to say to something, None when it goes wrong: that ends here."""
        try:
            return act(*args)
        except Exception as error:  # noqa: BLE001  promise 1: the user's bytes outrank telemetry
            self.count(error)
            return None

    def count(self, error: BaseException) -> None:
        """Count a fault that was caught elsewhere, as a place that cannot afford a call does."""
        first = _first(error)
        self._tally.add(TELEMETRY_FAULTS, ((REASON, type(first).__name__),))
        place = _place(first)
        if place not in self._told and len(self._told) < MAX_PLACES_TOLD:
            self._told.add(place)
            log.error("telemetry fault %s: counted, the request goes on", told(error))


def told(error: BaseException) -> str:
    """What may be logged of an error that nobody foresaw: `KeyError at Page.text:88`, of what went wrong first."""
    first = _first(error)
    return f"{type(first).__name__} at {_place(first)}"


def _first(error: BaseException) -> BaseException:
    while error.__context__ is not None:
        error = error.__context__
    return error


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{trace.tb_frame.f_code.co_qualname}:{trace.tb_lineno}"
