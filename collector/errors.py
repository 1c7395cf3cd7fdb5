"""The one tree of the collector's shells.

CollectorError
├── UsageError             a flag or its variable says what cannot be: exit code 2
├── UnusableDatabaseError  the database named cannot be used at all: the command ends with exit code 2
├── ListenError            the address cannot be listened on: exit code 2
├── TlsError               the files of TLS cannot be used: exit code 2 at the start, told and kept out later
├── UnavailableError       the database cannot commit now: 503, ask again
├── GapError               the journal no longer holds what follows: the store reads everything anew
├── LostLeadError          another collector evaluates now: what was to be written is dropped
├── UntoldError            a receiver of alerts did not take what it was told: it is told again
├── PayloadError           their fault: bytes that are not the OTLP message they claim to be: 400
└── RefusedError           their fault: a status and what would be right

A single point or span that is its sender's fault is no shell's error: `measurement.RejectedError` names it, and it is
counted.
"""


class CollectorError(Exception):
    """What went wrong, with what, and what would be right, in one line."""


class UsageError(CollectorError):
    """Bad input from whoever typed the command; the message is one line for them."""


class UnusableDatabaseError(CollectorError):
    """No collector can run on this database."""


class ListenError(CollectorError):
    """The address named is taken, or not this machine's."""


class TlsError(CollectorError):
    """The files cannot be what TLS shows or asks for."""


class UnavailableError(CollectorError):
    """Nothing was committed; the same bytes may come again after `retry_after_s`."""

    def __init__(self, message: str, *, retry_after_s: int = 5) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class GapError(CollectorError):
    """The journal goes on after, or elsewhere than, the last commit taken in."""


class LostLeadError(CollectorError):
    """The lease of this collector was given to another."""


class UntoldError(CollectorError):
    """A receiver of alerts did not take what it was told. `refused` says that it never will as things are: its address
    or its credentials are wrong."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class PayloadError(CollectorError):
    """Bytes that cannot be read as the message they claim to be."""


class RefusedError(CollectorError):
    """A request that will never succeed as it is: `status` is the HTTP answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
