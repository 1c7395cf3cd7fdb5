"""Outcomes that a status decides alone."""

import pytest

from sidecar.said.record import Outcome, outcome_of_status

STATUSES: dict[tuple[int | None, bool], Outcome | None] = {
    (None, False): None,
    (200, False): None,
    (302, False): None,
    (400, False): "client_error",
    (404, True): "client_error",
    (429, False): "quota",
    (429, True): "rejected",
    (499, False): "client_error",
    (500, False): "error",
    (503, False): "rejected",
    (503, True): "rejected",
    (504, False): "error",
    (529, True): "error",
}


@pytest.mark.parametrize(("status", "overload"), STATUSES)
def test_outcomes_of_statuses(status: int | None, overload: bool) -> None:
    assert outcome_of_status(status, overload=overload) == STATUSES[status, overload]
