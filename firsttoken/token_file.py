"""A token that is kept in a file: on a command line all of a machine's users would see it."""

from pathlib import Path

from firsttoken.errors import UsageError


def token_of(flag: str, file: str | None) -> str:
    """The token in the file that a flag names; '' where it names none. Raises UsageError."""
    if not file:
        return ""
    try:
        token = Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"{flag} {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        token = ""
    if not token or not token.isascii() or not token.isprintable():
        raise UsageError(f"{flag} {file} holds no token: put it there, on one line")
    return token
