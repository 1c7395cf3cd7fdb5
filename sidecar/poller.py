"""Asks the engine for its own metrics and its list of models, and holds the latest answer while it is fresh.

A sample that is older than three intervals is gone: an engine that stopped answering has an unknown occupancy, not
its last one. An engine without a metrics page is asked again now and then, in case it was only starting.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import orjson

from sidecar import engine_requests, limits, scrape
from sidecar.engines import LLAMACPP, Engine
from sidecar.labels import ModelLabels
from sidecar.metrics_text import Page, PageReader
from sidecar.scrape import ServerSample
from sidecar.tally import Attributes, Number, Tally
from sidecar.upstream import Target, parse_target
from sidecar.usage_policy import UsagePolicy
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
    from sidecar.http_read import ResponseReader

log = logging.getLogger(__name__)

AUTO = "auto"


class PollError(Exception):
    """A poll without a usable answer; the message is the reason that is counted."""


Get = Callable[[Target, str], Awaitable[bytes]]
"""How a page is fetched: the body of a 200 answer, or PollError."""


def split_url(url: str) -> tuple[Target, str]:
    """The server and the raw path with query of a URL; ValueError as `parse_target`."""
    parts = urlsplit(url)
    target = parse_target(f"{parts.scheme}://{parts.netloc}")
    return target, f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"


def page_of(url: str, engine: str) -> tuple[Target, str]:
    """The server and the path of a metrics page; a URL without a path means the engine's usual one."""
    target, path = split_url(url)
    return target, (scrape.metrics_path(engine) or path) if path == "/" else path


async def get(target: Target, path: str, *, timeout_s: float = limits.SCRAPE_TIMEOUT_S) -> bytes:
    """The body of a 200 answer, over a socket; PollError says why there is none."""
    from sidecar.http_read import BadAnswerError

    try:
        # Not `wait_for`: it can swallow the cancelling of its caller, who would then poll for ever.
        async with asyncio.timeout(timeout_s):
            return await _get(target, path)
    except TimeoutError:
        raise PollError("timeout") from None
    except (OSError, UnicodeError):  # a host's name that is none is a UnicodeError
        raise PollError("connection") from None
    except BadAnswerError:
        raise PollError("not_http") from None


async def _get(target: Target, path: str) -> bytes:
    from sidecar.http_read import ResponseReader  # here: who fetches otherwise needs no HTTP parser

    tls = _tls() if target.scheme == "https" else None
    reader, writer = await asyncio.open_connection(target.host, target.port, ssl=tls)
    try:
        head = f"GET {target.prefix}{path} HTTP/1.1\r\nHost: {target.authority}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise PollError("not_http") from None
        answer = ResponseReader(method=b"GET")
        status = answer.head(raw).status
        if status != 200:
            raise PollError(f"http_{status}")
        return await _body(reader, answer)
    finally:
        writer.close()


@cache
def _tls() -> ssl.SSLContext:
    """Reads the system's certificates, which takes 50 ms: once, and not at every poll."""
    return ssl.create_default_context()


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


class Watching(Protocol):
    """Whoever watches an engine, and is told what its pages say: over its requests (`Eye`), or from outside."""

    tally: Tally
    labels: ModelLabels
    usage: UsagePolicy
    overload_429: bool
    look: Callable[..., None]

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
        path = scrape.metrics_path(engine)
        self._page = page_of(url, engine) if url is not None else None if path is None else (target, path)
        self._sample: ServerSample | None = None
        self._sample_s = 0.0
        self._hit_ratio: float | None = None
        self._told = self._starting = False
        self.on_reached: Callable[[], None] | None = None
        self._reader, self._on_page = PageReader(scrape.WANTED), on_page
        if on_page is not None:
            self._reader = PageReader(scrape.WANTED | engine_requests.names())

    def fresh(self, now_s: float) -> ServerSample | None:
        """The latest sample while it may still be taken for the present."""
        if self._sample is None or now_s - self._sample_s > limits.STALE_INTERVALS * self._interval_s:
            return None
        return self._sample

    async def poll_metrics(self) -> None:
        """Poll for ever, each interval; a page that is not there is asked for again after a while."""
        while self._page is not None:
            began_s = time.monotonic()
            worth_asking = await self.poll_once() or self._wanted or self._starting
            pause_s = self._interval_s if worth_asking else limits.UNSUPPORTED_RETRY_S
            await asyncio.sleep(max(0.0, pause_s - (time.monotonic() - began_s)))

    async def poll_once(self) -> bool:
        """One poll; whether it gave a sample of a known engine. A failure is counted once a page is expected."""
        if self._page is None:
            return False
        try:
            body = await self._fetch(*self._page)
            # Off the loop: a page of megabytes takes a second, and every stream would stand still for it.
            page, sample = await asyncio.get_running_loop().run_in_executor(None, self._read, body)
            if sample.engine is None:
                raise PollError("unknown_engine")
            engine = scrape.ENGINES[sample.engine]
            if engine is LLAMACPP and sample.kv_occupancy is None:
                sample = replace(sample, kv_occupancy=await self._slots_occupancy())
        except PollError as error:
            self._failed(str(error))
            return False
        self._take(sample, time.monotonic())
        if self._on_page is not None:
            self._eye.look(self._on_page, page, engine, sample)
        return True

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
        self._starting = _may_be_starting(reason)
        if reason == "connection":
            self._eye.usage.server_gone()
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
        self._wanted = True
        self._eye.overload_429 = sample.engine == "tgi"
        if sample.engine is not None:
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
    return reason in ("connection", "timeout") or reason.startswith("http_5")


def _model_names(body: bytes) -> list[str]:
    """The ids of an OpenAI model list; empty when it is none."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return []
    items = data.get("data") if isinstance(data, dict) else None
    found = [item.get("id") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [name for name in found if isinstance(name, str)]
