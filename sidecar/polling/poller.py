"""Asks the engine for its own metrics and its list of models, and holds the latest answer while it is fresh.

A sample is gone with the next poll that fails, and once it is older than three intervals: an engine that stopped
answering has an unknown occupancy, not its last one. Where an engine's page is, `engine_search` says; once it is found
it is looked at alone, until the server is gone and another may come back. An engine without a metrics page is asked
again now and then, in case it was only starting.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import orjson

from sidecar import limits
from sidecar.address import UNIX
from sidecar.counting.tally import Attributes, Number, Tally
from sidecar.engine import engine_requests, engine_search, scrape
from sidecar.engine.engine_search import Place
from sidecar.engine.engines import LLAMACPP, Engine
from sidecar.engine.metrics_text import Page, PageReader
from sidecar.engine.scrape import AUTO, ServerSample
from sidecar.judging.labels import ModelLabels
from sidecar.transport.certificates import ServerTls
from sidecar.transport.upstream import Target, parse_target, split_unix
from slo.signals import (
    ENGINE_PREEMPTIONS,
    ENGINE_RUNNING,
    ENGINE_WAITING,
    KV_CAPACITY,
    KV_OCCUPANCY,
    PREFIX_HIT_RATIO,
    RANK,
    REASON,
    REQUEST_MODEL,
    SCRAPES_FAILED,
)

if TYPE_CHECKING:
    from sidecar.http.http_read import ResponseReader

log = logging.getLogger(__name__)

_SYSTEM = ServerTls()


class PollError(Exception):
    """A poll without a usable answer; the message is the reason that is counted."""


Get = Callable[[Target, str], Awaitable[bytes]]
"""How a page is fetched: the body of a 200 answer, or PollError."""


def split_url(url: str) -> tuple[Target, str]:
    """The server and the raw path with query of a URL; ValueError as `parse_target`."""
    if url.startswith(UNIX):
        socket_path, path = split_unix(url)
        return parse_target(str(socket_path)), path or "/"
    parts = urlsplit(url)
    if not parts.scheme or not parts.netloc:
        parse_target(url)  # which says what is wrong with it
    target = parse_target(f"{parts.scheme}://{parts.netloc}")
    return target, f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"


def page_of(url: str, engine: str) -> tuple[Target, str]:
    """The server and the path of a metrics page; a URL without a path means the engine's usual one."""
    target, path = split_url(url)
    return target, (scrape.metrics_path(engine) or path) if path == "/" else path


async def get(
    target: Target, path: str, *, timeout_s: float = limits.SCRAPE_TIMEOUT_S, tls: ServerTls = _SYSTEM
) -> bytes:
    """The body of a 200 answer, over a socket; PollError says why there is none."""
    from sidecar.http.http_read import BadAnswerError

    try:
        # Not `wait_for`: it can swallow the cancelling of its caller, who would then poll for ever.
        async with asyncio.timeout(timeout_s):
            return await _get(target, path, tls)
    except TimeoutError:
        raise PollError("timeout") from None
    except ssl.SSLError as error:
        tls.failed(error)
        raise PollError("tls") from None
    except (OSError, UnicodeError):  # a host's name that is none is a UnicodeError
        raise PollError("connection") from None
    except BadAnswerError:
        raise PollError("not_http") from None


async def _get(target: Target, path: str, tls: ServerTls) -> bytes:
    from sidecar.http.http_read import ResponseReader  # here: who fetches otherwise needs no HTTP parser

    reader, writer = await _connect(target, tls)
    answer = ResponseReader(method=b"GET")
    try:
        head = f"GET {target.prefix}{path} HTTP/1.1\r\nHost: {target.authority}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise PollError("not_http") from None
        status = answer.head(raw).status
        if status != 200:
            raise PollError(f"http_{status}")
        return await _body(reader, answer)
    finally:
        answer.close()
        writer.close()


async def _connect(target: Target, tls: ServerTls) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if target.unix is not None:
        return await asyncio.open_unix_connection(target.unix.path)
    if target.scheme != "https":
        return await asyncio.open_connection(target.host, target.port)
    name = tls.name_of(target.host)
    return await asyncio.open_connection(target.host, target.port, ssl=tls.context, server_hostname=name)


async def _body(reader: asyncio.StreamReader, answer: "ResponseReader") -> bytes:
    pieces, size = [], 0
    while not answer.complete:
        data = await reader.read(1 << 16)
        if not data:
            if answer.framing == "close":
                break
            raise PollError("cut_short")
        pieces.append(answer.body(data))
        size += len(pieces[-1])
        if size > limits.SCRAPE_BYTES:
            raise PollError("too_large")
    return b"".join(pieces)


OnPage = Callable[[Page, Engine, ServerSample], object]


class Hearing(Protocol):
    """Who has to know which engine it is, and when it was gone: `UsagePolicy`."""

    def engine_is(self, name: str) -> None: ...
    def server_gone(self) -> None: ...


class Watching(Protocol):
    """Whoever watches an engine, and is told what its pages say: over its requests (`Eye`), or from outside."""

    tally: Tally
    labels: ModelLabels
    overload_429: bool

    @property
    def look(self) -> Callable[..., object]: ...

    @property
    def usage(self) -> Hearing: ...

    def introduce(self, models: Iterable[str]) -> None: ...


class Poller:
    """Polls one engine. `url` None: the metrics page of `target`, if it turns out to have one that can be read.

    `on_page` is handed every page that gave a sample, with the engine's requests on it."""

    def __init__(
        self,
        target: Target,
        eye: Watching,
        *,
        url: str | None = None,
        engine: str = AUTO,
        interval_s: float = limits.SCRAPE_INTERVAL_S,
        fetch: Get = get,
        on_page: OnPage | None = None,
    ) -> None:
        self._fetch = fetch
        self._target, self._eye, self._engine, self._interval_s = target, eye, engine, interval_s
        self._wanted = url is not None or engine != AUTO
        if engine in scrape.ENGINES:  # told, it holds before the first page and without any
            eye.overload_429 = scrape.ENGINES[engine].overload_429
        self._everywhere = engine_search.places(*((target, "/") if url is None else split_url(url)), engine)
        self._places = self._everywhere
        self._sample: ServerSample | None = None
        self._sample_s = 0.0
        self._gap = False
        self._hit_ratio: float | None = None
        self._told = self._starting = False
        self.on_reached: Callable[[], None] | None = None
        self._reader, self._on_page = PageReader(scrape.WANTED), on_page
        if on_page is not None:
            self._reader = PageReader(scrape.WANTED | engine_requests.names())

    def fresh(self, now_s: float) -> ServerSample | None:
        """The latest sample while it may still be taken for the present."""
        if self._gap or self._sample is None or now_s - self._sample_s > limits.STALE_INTERVALS * self._interval_s:
            return None
        return self._sample

    async def poll_metrics(self) -> None:
        """Poll for ever, each interval; a page that is not there is asked for again after a while."""
        while self._everywhere:
            began_s = time.monotonic()
            worth_asking = await self.poll_once() or self._wanted or self._starting
            pause_s = self._interval_s if worth_asking else limits.UNSUPPORTED_RETRY_S
            await asyncio.sleep(max(0.0, pause_s - (time.monotonic() - began_s)))

    async def poll_once(self) -> bool:
        """One poll; whether it gave a sample of a known engine. A failure is counted once a page is expected."""
        reason = ""
        for place in self._places:
            try:
                page, sample = await self._look_at(place)
            except PollError as error:
                reason = reason or str(error)
                if _may_be_starting(str(error)):
                    break
            else:
                return await self._found(place, page, sample)
        if reason:
            self._failed(reason)
        return False

    async def _look_at(self, place: Place) -> tuple[Page, ServerSample]:
        """A page of a known engine, and what it says; PollError when it is none."""
        body = await self._fetch(place.target, place.path)
        if place.sign_of:
            page, sample = Page({}, 0), engine_search.known_by(place, body)
        else:
            # Off the loop: a page of megabytes takes a second, and every stream would stand still for it.
            page, sample = await asyncio.get_running_loop().run_in_executor(None, self._read, body)
        if sample.engine is None:
            raise PollError("unknown_engine")
        if sample.engine == LLAMACPP.name and sample.kv_occupancy is None:
            sample = replace(sample, kv_occupancy=await self._slots_occupancy())
        return page, sample

    async def _found(self, place: Place, page: Page, sample: ServerSample) -> bool:
        """An engine tells its state here, or only its name; whether there is a sample."""
        assert sample.engine is not None
        engine = scrape.ENGINES[sample.engine]
        if place.metrics is not None:
            self._places = (place.metrics,)
            found = await self.poll_once()
            self._starting = False  # the server itself is up
            return found
        if engine.metrics_path is None:
            self._without_page(engine)
            return False
        self._places = (place,)
        self._take(sample, time.monotonic())
        if self._on_page is not None:
            self._eye.look(self._on_page, page, engine, sample)
        return True

    def _without_page(self, engine: Engine) -> None:
        self._starting = False
        self._eye.usage.engine_is(engine.name)
        if not self._told:
            log.info("engine %s has no metrics page: its state stays unknown", engine.name)
        self._told = True

    def _read(self, body: bytes) -> tuple[Page, ServerSample]:
        page = self._reader.read(body)
        return page, scrape.sample_of(page, self._engine)

    async def _slots_occupancy(self) -> float | None:
        """What llama.cpp says on `/slots` only; unknown when that page is switched off."""
        try:
            return scrape.read_slots(await self._fetch(self._target, "/slots"))
        except PollError:
            return None

    def _failed(self, reason: str) -> None:
        self._starting, self._gap = _may_be_starting(reason), True
        if reason == "connection":
            self._eye.usage.server_gone()
        if reason == "connection" or not self._starting:
            self._places = self._everywhere  # what comes back, or stands there now, may be another engine
        if self._sample is None and not self._wanted:
            if self._starting:
                return
            if not self._told:
                log.info("no metrics page that can be read (%s): engine state stays unknown", reason)
        else:
            self._eye.tally.add(SCRAPES_FAILED, ((REASON, reason),))
            if not self._told:
                log.warning("the engine's metrics cannot be read (%s)", reason)
        self._told = True

    def _take(self, sample: ServerSample, now_s: float) -> None:
        if self._sample is None:
            log.info("engine %s: its metrics are read every %g s", sample.engine, self._interval_s)
        before, self._sample, self._sample_s, self._told = self._sample, sample, now_s, False
        self._wanted, self._gap = True, False
        if sample.engine is not None:
            self._eye.overload_429 = scrape.ENGINES[sample.engine].overload_429
            self._eye.usage.engine_is(sample.engine)
        if not self._eye.labels.served and sample.models:
            self._eye.introduce(self._eye.labels.serve(sample.models))
        if before is not None:
            self._hit_ratio = scrape.hit_ratio(before, sample)
            if sample.preemptions_total is not None:
                self._eye.tally.add(ENGINE_PREEMPTIONS, self._named(sample), int(scrape.preempted(before, sample)))
        elif sample.preemptions_total is not None:
            self._eye.tally.create(ENGINE_PREEMPTIONS, self._named(sample))

    async def poll_models(self) -> None:
        """Learn the served models for ever, so that their label sets exist before their first request."""
        while True:
            known = await self.models_once()
            await asyncio.sleep(limits.MODELS_INTERVAL_S if known else self._interval_s)

    async def models_once(self) -> bool:
        """Ask for `/v1/models`; whether the server is up, with or without such a list."""
        try:
            names = _model_names(await self._fetch(self._target, "/v1/models"))
        except PollError as error:
            if _may_be_starting(str(error)):
                return False
            names = []
        if self.on_reached is not None:
            self.on_reached()
        if names:
            self._eye.introduce(self._eye.labels.serve(names))
        return True

    def gauges(self, now_s: float) -> Iterator[Number]:
        """The engine's state while it is fresh; what it does not say is absent."""
        sample = self.fresh(now_s)
        if sample is None:
            return
        named = self._named(sample)
        hit_ratio = self._hit_ratio if self._hit_ratio is not None else sample.prefix_hit_ratio
        values = (
            (ENGINE_RUNNING, sample.running),
            (ENGINE_WAITING, sample.waiting),
            (KV_OCCUPANCY, sample.kv_occupancy),
            (KV_CAPACITY, sample.kv_capacity_tokens),
            (PREFIX_HIT_RATIO, hit_ratio),
        )
        yield from (Number(metric, named, value) for metric, value in values if value is not None)
        for rank in sample.ranks:
            for metric, value in ((KV_OCCUPANCY, rank.kv_occupancy), (KV_CAPACITY, rank.kv_capacity_tokens)):
                if value is not None:
                    yield Number(metric, (*named, (RANK, str(rank.rank))), value)

    def _named(self, sample: ServerSample) -> Attributes:
        """The model, when the engine serves one: its state is that of all its models together."""
        model = self._eye.labels.sole or (sample.models[0] if len(sample.models) == 1 else None)
        return () if model is None else ((REQUEST_MODEL, self._eye.labels.of(model)),)


def _may_be_starting(reason: str) -> bool:
    """501 is what llama.cpp says of pages that it was not started with."""
    return reason in ("connection", "timeout", "tls") or (reason.startswith("http_5") and reason != "http_501")


def _model_names(body: bytes) -> list[str]:
    """The ids of an OpenAI model list; empty when it is none."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    items = data.get("data") if isinstance(data, dict) else None
    found = [item.get("id") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [name for name in found if isinstance(name, str)]
