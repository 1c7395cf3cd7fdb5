"""Questions over HTTP, many at a time, each of bounded length and duration: the doctor's one door to the outside.

An answer is a value whatever happened; nothing here raises for what a server does. What is read of a body is dropped
with the facts that were made of it.
"""

import http.client
import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

from firsttoken.deadline import hung_up_after
from firsttoken.doctor.address import Address, plain_text
from firsttoken.errors import UnreachableError
from firsttoken.http_json import Access, connection, request_target

TIMEOUT_S = 5.0
MAX_BYTES = 32 * 1024 * 1024
CHUNK_BYTES = 1 << 16
AT_ONCE = 16
NO_END = "answers too slowly: the answer does not end"
HALF_S = 0.5
"""What a time that was cut to whole seconds has lost, on average."""


class EndlessError(Exception):
    """An answer that is longer, or takes longer, than anybody here waits for. It does not leave this room."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `error` says why there is no answer at all; `offset_s` is how many seconds the server's clock is
    ahead of ours, None where it does not tell."""

    url: str
    status: int = 0
    body: bytes = b""
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    sent_s: float = 0.0
    received_s: float = 0.0

    @property
    def is_fine(self) -> bool:
        return 200 <= self.status < 300

    @property
    def trouble(self) -> str:
        """Why this is no answer to work with; '' when it is one."""
        if self.error:
            return self.error
        if self.is_fine:
            return ""
        said = plain_text(self.body[:300].decode("utf-8", "replace"))
        return f"answers {self.status}{': ' if said else ''}{said}"

    @property
    def json(self) -> object:
        """The body as JSON, None where it is none."""
        try:
            return json.loads(self.body) if self.is_fine else None
        except (ValueError, RecursionError):
            return None

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def offset_s(self) -> float | None:
        """By its Date, which is cut to whole seconds; none of an answer that was kept by a cache."""
        try:
            told = parsedate_to_datetime(self.headers["date"]).timestamp()
        except (KeyError, ValueError, TypeError):
            return None
        return None if "age" in self.headers else told + HALF_S - (self.sent_s + self.received_s) / 2


def together(questions: Iterable[Callable[[], Answer]]) -> list[Answer]:
    """The answers to all of them, in their order."""
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(lambda question: question(), questions))


def get(where: Address, path: str, *, access: Access, timeout_s: float = TIMEOUT_S) -> Answer:
    """Ask for a path below an address. `timeout_s` holds for connecting, and for the whole exchange then."""
    url = where.at(path)
    try:
        opened = connection(url, timeout_s, access)
    except UnreachableError as error:
        return Answer(url, error=plain_text(str(error)))
    try:
        return _answer(opened, url, authorized(where, access), timeout_s)
    except EndlessError as error:
        return Answer(url, error=str(error))
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answer(url, error=f"does not answer: {why(error)}")
    finally:
        opened.close()


def _answer(opened: http.client.HTTPConnection, url: str, headers: Mapping[str, str], timeout_s: float) -> Answer:
    """What is said to one GET. Raises what http.client does, and EndlessError."""
    sent_s, received_s = time.time(), 0.0
    with hung_up_after(opened, timeout_s) as is_over:
        try:
            opened.request("GET", request_target(url), headers=dict(headers))
            response = opened.getresponse()
            received_s = time.time()
            body = _read(response)
        except (OSError, http.client.HTTPException):
            if is_over.is_set():
                raise (EndlessError(NO_END) if received_s else TimeoutError("timed out")) from None
            raise
    if is_over.is_set():  # a body without a length ends where the line does
        raise EndlessError(NO_END)
    found = {name.lower(): value for name, value in response.getheaders()}
    return Answer(url, response.status, body, headers=found, sent_s=sent_s, received_s=received_s)


def authorized(where: Address, access: Access) -> dict[str, str]:
    """The header that opens an address: by what it carries itself, else by the token; none where there is neither."""
    shown = where.authorization or (f"Bearer {access.token}" if access.token else "")
    return {"Authorization": shown} if shown else {}


def why(error: Exception) -> str:
    """What went wrong, in few words."""
    said = (error.strerror or "").lower() if isinstance(error, OSError) else ""
    return plain_text(said or str(error) or type(error).__name__)


def _read(response: http.client.HTTPResponse) -> bytes:
    """The body, whole. Raises EndlessError for one that is too long."""
    body = bytearray()
    while chunk := response.read1(CHUNK_BYTES):
        body += chunk
        if len(body) > MAX_BYTES:
            raise EndlessError(f"answers more than {MAX_BYTES >> 20} MiB")
    return bytes(body)
