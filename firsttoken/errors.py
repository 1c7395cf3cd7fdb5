"""What can go wrong here.

FirstTokenError
├── UnreachableError    nobody answers at a URL, or not as expected
├── FolderError         the demo's folder holds somebody else's files, or another demo
├── UsageError          a flag with a value that can't be
└── ChildError          a process of the demo ended early, or never got ready
"""


class FirstTokenError(Exception):
    """Root of the package's errors; the message says what, which value, and what would be right."""


class UnreachableError(FirstTokenError):
    """No usable answer from a URL."""


class FolderError(FirstTokenError):
    """A folder that the demo must not write to."""


class UsageError(FirstTokenError):
    """A flag with a value that can't be."""


class ChildError(FirstTokenError):
    """A process that the demo can't go on without."""
