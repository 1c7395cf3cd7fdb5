"""Who an answer is for: what an exchange asks of a client's connection, and of the clients that have left."""

from typing import Protocol

from sidecar import limits


class Out(Protocol):
    """Where bytes for a client go: its transport, or nowhere."""

    def write(self, data: bytes) -> None: ...


class Nowhere:
    """Where bytes go that nobody waits for."""

    def write(self, data: bytes) -> None:
        """Drop them."""


NOWHERE = Nowhere()


class Client(Protocol):
    """What an exchange asks of the client's connection."""

    @property
    def draining(self) -> bool: ...

    @property
    def leftovers(self) -> "Leftovers | None":
        """Who takes its answer when it leaves; None: then the answer is cancelled."""

    @property
    def out(self) -> Out: ...
    def finished(self, *, keep: bool) -> None: ...
    def cut(self) -> None: ...
    def hold_upload(self, *, hold: bool) -> None: ...
    def enter_tunnel(self) -> None: ...


class Leftovers:
    """The client of every answer that its server may end though nobody waits for it; `answers`: how many there are.

    Each is a connection to the server that no limit on clients counts, so they have one of their own."""

    draining = False
    leftovers: "Leftovers | None" = None
    out: Out = NOWHERE

    def __init__(self) -> None:
        self.answers = 0

    @property
    def has_room(self) -> bool:
        """Whether one more may be."""
        return self.answers < limits.LEFTOVERS

    def begin(self) -> None:
        """One more client has left its answer."""
        self.answers += 1

    def finished(self, *, keep: bool) -> None:  # noqa: ARG002  there is no connection to keep
        """An answer has ended."""
        self.answers -= 1

    def cut(self) -> None:
        """An answer has broken off."""
        self.answers -= 1

    def hold_upload(self, *, hold: bool) -> None:
        """Nothing more comes."""

    def enter_tunnel(self) -> None:
        """Nothing more comes."""
