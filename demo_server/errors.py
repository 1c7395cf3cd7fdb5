"""What can go wrong, told apart by whose fault it is.

DemoServerError
├── BadStartError           the command line or the machine: one line, exit code 2
└── RequestError            the answer to one request, with its HTTP status and OpenAI's error type
    ├── BadRequestError      400, the client's fault
    ├── TooLargeError        413, the client's fault
    ├── UnknownModelError    404, the client's fault
    ├── ForbiddenError       403, an admin route asked from elsewhere
    ├── QueueFullError       503, no room to wait in
    └── EngineFailedError    500, our fault (or an injected one)
"""


class DemoServerError(Exception):
    """Root of every error this package raises on purpose."""


class BadStartError(DemoServerError):
    """The server cannot start as asked; the message is the one line that is shown."""


class RequestError(DemoServerError):
    """One request cannot be answered; `param` names the field at fault, if one is."""

    status = 500
    kind = "InternalServerError"

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


class BadRequestError(RequestError):
    """The body says something impossible or unsupported."""

    status = 400
    kind = "BadRequestError"


class TooLargeError(RequestError):
    """The body is longer than any prompt that fits could be."""

    status = 413
    kind = "RequestEntityTooLargeError"


class UnknownModelError(RequestError):
    """A model name that is not served here."""

    status = 404
    kind = "NotFoundError"


class ForbiddenError(RequestError):
    """An admin route was asked by a peer that is not on this machine."""

    status = 403
    kind = "PermissionDeniedError"


class QueueFullError(RequestError):
    """As many requests wait as `--max-queue` allows."""

    status = 503
    kind = "ServiceUnavailableError"


class EngineFailedError(RequestError):
    """The engine thread died, or a fault was injected into this request."""
