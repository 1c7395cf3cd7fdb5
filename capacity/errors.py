"""What can go wrong here.

CapacityError
├── TargetError        the URL names no server that could be asked
├── WorkloadError      a number of the load that makes no load
├── UnreachableError   nobody answers at the target, or what answers is no OpenAI-compatible server
└── DatabaseError      a collector's database that cannot be used
"""


class CapacityError(Exception):
    """Root of the package's errors; the message says what, which value, and what would be right."""


class TargetError(CapacityError):
    """A target URL that cannot be asked."""


class WorkloadError(CapacityError):
    """A rate, length, weight or limit outside what it can be."""


class UnreachableError(CapacityError):
    """No usable answer from the target."""


class DatabaseError(CapacityError):
    """A database that is away, wrongly named, or not one of a collector of this release."""
