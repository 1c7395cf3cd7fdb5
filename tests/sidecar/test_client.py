"""The client that has left takes whatever a relay still has for it."""

from sidecar.client import NOBODY, Client


def test_nobody_takes_everything_and_never_drains() -> None:
    client: Client = NOBODY
    client.write(b"an answer")
    client.hold_upload(hold=True)
    client.enter_tunnel()
    client.cut()
    client.finished(keep=True)
    assert not client.draining
