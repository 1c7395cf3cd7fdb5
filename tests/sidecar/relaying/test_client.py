"""The clients that have left take whatever relays still have for them."""

import pytest

from sidecar.relaying.client import Client, Leftovers


def test_one_that_left_takes_everything_and_never_drains() -> None:
    leftovers = Leftovers()
    leftovers.begin()
    client: Client = leftovers
    client.out.write(b"an answer")
    client.hold_upload(hold=True)
    client.enter_tunnel()
    assert not client.draining
    assert leftovers.answers == 1
    client.finished(keep=True)
    assert leftovers.answers == 0


def test_there_is_room_for_a_number_of_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sidecar.limits.LEFTOVERS", 1)
    leftovers = Leftovers()
    assert leftovers.has_room
    leftovers.begin()
    assert not leftovers.has_room
    leftovers.cut()
    assert leftovers.has_room
