"""Who an answer is for: what an exchange asks of a client's connection, and of the client that has left."""

from collections.abc import Callable
from typing import Protocol


class Client(Protocol):
    """What an exchange asks of the client's connection."""

    @property
    def draining(self) -> bool: ...

    @property
    def write(self) -> Callable[[bytes], None]: ...
    def finished(self, *, keep: bool) -> None: ...
    def cut(self) -> None: ...
    def hold_upload(self, *, hold: bool) -> None: ...
    def enter_tunnel(self) -> None: ...


class Nobody:
    """The client that has left, while the server ends its answer."""

    draining = False

    def write(self, data: bytes) -> None:
        """Drop it."""

    def finished(self, *, keep: bool) -> None:
        """There is no connection to keep."""

    def cut(self) -> None:
        """There is none to cut."""

    def hold_upload(self, *, hold: bool) -> None:
        """Nothing more comes."""

    def enter_tunnel(self) -> None:
        """Never asked: a tunnel is not drained."""


NOBODY = Nobody()
