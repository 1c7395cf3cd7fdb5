"""One admitted request on its way through an ASGI app: forwarded at once, looked at after.

Messages go through as they are and in their order. `send` only notes a piece of the answer and its time, and gives
back the server's own awaitable. Noted pieces are looked at once the server has them: before the first token in the
loop's next turn; then up to `RUN` at a time, or as soon as a deadline, a page or the end asks (`Watch.catch_up`).
Times are those of the notes, so that looking late changes no number. The request is held (t0) when its last
`http.request` message is received.

Who ended an answer that has no last piece: the client, if `http.disconnect` was received, if the server says so when
asked at the end, or if the app was cancelled; else the app, by an exception or by returning too early. A client that
leaves an app which never listens, and answers all the same, is noticed under uvicorn only, by uvicorn's own note.

A fault of telemetry is counted by the eye; an exception of the app is its own and passes through.
"""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic_ns

from sidecar.http.http_head import ResponseHead
from sidecar.judging.watch import Watch
from sidecar.said.template import Template
from sidecar.within.asgi import App, Message, Receive, Scope, Send

RUN = 64  # pieces of a running stream that are looked at together
MOST = 256  # pieces noted at most, should an app never let go of the loop
TURNS = 3  # of the loop that a server has to say that the client has left


class AsgiRelay:
    """One admitted request on its way through the app."""

    __slots__ = (
        "_end_ns",
        "_forward",
        "_head",
        "_left",
        "_look",
        "_loop",
        "_read_times_ns",
        "_reads",
        "_receive",
        "_scheduled",
        "_scope",
        "_template",
        "_text_times_ns",
        "_texts",
        "_watch",
    )

    def __init__(self, watch: Watch, look: Callable[..., None], *, scope: Scope, receive: Receive, send: Send) -> None:
        self._watch, self._look = watch, look
        self._scope, self._receive, self._forward = scope, receive, send
        self._loop = asyncio.get_running_loop()
        # Noted: the head; then pieces of a known template, by their texts; then other pieces, whole; then the end.
        self._head: tuple[ResponseHead, int] | None = None
        self._template: Template | None = None
        self._texts: list[bytes] = []
        self._text_times_ns: list[int] = []
        self._reads: list[bytes] = []
        self._read_times_ns: list[int] = []
        self._end_ns: int | None = None
        self._scheduled = self._left = False
        watch.catch_up = self.see

    async def run(self, app: App) -> None:
        """Let the app answer, and know how it ended."""
        try:
            await app(self._scope, self.receive, self.sender())
        except Exception as error:
            await self._conclude(type(error).__name__)
            raise
        except BaseException:  # cancelled by the server: nobody waits any more
            self._look(self._over, True, "cancelled")
            raise
        await self._conclude("incomplete_response")

    # What the app is given.

    async def receive(self) -> Message:
        """The server's next message."""
        message = await self._receive()
        self._look(self._received, message)
        return message

    def sender(self) -> Send:
        """What the app sends with: notes, and forwards. A token costs no more than these few lines."""
        forward, note, note_time = self._forward, self._texts.append, self._text_times_ns.append
        noted = self._text_times_ns

        def send(message: Message) -> Awaitable[None]:
            template = self._template
            try:
                if template is None or not message["more_body"]:
                    self._note_other(message)
                else:
                    # What neither of these finds comes back as the same object.
                    rest = (body := message["body"]).removeprefix(template.prefix)
                    text = rest.removesuffix(template.suffix)
                    if rest is not body and text is not rest:
                        note(text)
                        note_time(monotonic_ns())
                        if len(noted) >= RUN:
                            self._full(len(noted))
                    else:
                        self._note_piece(body)
            except (AttributeError, KeyError):  # no `bytes` (a memoryview is allowed), or a field left out
                self._look(self._note_other, message)
            except Exception as error:  # noqa: BLE001  the message itself is the server's to refuse
                self._look(_count, error)
            return forward(message)

        return send

    # What is noted.

    def _note_piece(self, body: bytes) -> None:
        """A piece that is not made from the template; until it is seen, so is what follows."""
        self._template = None
        self._reads.append(bytes(body))
        self._read_times_ns.append(monotonic_ns())
        if len(self._reads) >= RUN or self._watch.may_learn:
            self._full(len(self._reads))

    def _note_other(self, message: Message) -> None:
        """A message that is no piece made from the template: the head, another piece, the end."""
        kind, body = message["type"], message.get("body")
        if body:
            self._note_piece(body)
        if kind == "http.response.start":
            headers = tuple(message.get("headers", ()))
            answer = ResponseHead(message["status"], b"", headers, keep_alive=True, framing="close")
            self._head = (answer, monotonic_ns())
            self._soon()
        elif kind in ("http.response.body", "http.response.pathsend") and not message.get("more_body"):
            self._left = self._left or _has_left(self._receive)
            self._end_ns = monotonic_ns()
            self._soon()

    def _full(self, noted: int) -> None:
        if noted < MOST:
            self._soon()
        else:
            self.see()

    def _soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self.see)

    def _received(self, message: Message) -> None:
        if message["type"] == "http.request":
            if body := message.get("body"):
                self._watch.body(body)
            if not message.get("more_body"):
                self._watch.held(monotonic_ns())
        elif message["type"] == "http.disconnect":
            self.see()
            self._left = True
            self._watch.left(monotonic_ns())

    # What is seen.

    def see(self) -> None:
        """Look at all that was noted; never raises."""
        self._scheduled = False
        self._look(self._see)

    def _see(self) -> None:
        watch = self._watch
        if self._head is not None:
            (head, at_ns), self._head = self._head, None
            watch.answered(head, at_ns)
        if self._texts:
            texts, times_ns = self._texts[:], self._text_times_ns[:]
            self._texts.clear()
            self._text_times_ns.clear()
            watch.texts(texts, times_ns)
        if self._reads:
            reads, times_ns = self._reads, self._read_times_ns
            self._reads, self._read_times_ns = [], []
            for read, at_ns in zip(reads, times_ns, strict=True):
                watch.read(read, at_ns)
            self._template = watch.template
        if self._end_ns is not None:
            if self._left:
                watch.left(self._end_ns)
            else:
                watch.complete(self._end_ns, True)

    # How it ended.

    async def _conclude(self, error_type: str) -> None:
        """The app is done."""
        left = self._end_ns is None and (self._left or await self._is_client_gone())
        self._look(self._over, left, error_type)

    def _over(self, left: bool, error_type: str) -> None:
        """The last word; it changes nothing where the answer had its end, or the client left, before."""
        self.see()
        if left:
            self._watch.left(monotonic_ns())
        else:
            self._watch.lost(monotonic_ns(), error_type)

    async def _is_client_gone(self) -> bool:
        """Ask the server: it says so at once, or has nothing to say."""
        asked = self._loop.create_task(_received_by(self._receive))
        for _ in range(TURNS):
            await asyncio.sleep(0)
        if asked.done():
            return asked.result()
        asked.cancel()
        return False


async def _received_by(receive: Receive) -> bool:
    """Whether the next message is that the client has left."""
    try:
        return bool((await receive())["type"] == "http.disconnect")
    except Exception:  # noqa: BLE001  a server that cannot be asked has not said so
        return False


def _has_left(receive: Receive) -> bool:
    """uvicorn's own note that the client has left, for apps that answer without ever listening for it."""
    return getattr(getattr(receive, "__self__", None), "disconnected", False) is True


def _count(error: Exception) -> None:
    """Let a fault be counted where all are."""
    raise error
