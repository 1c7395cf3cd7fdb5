"""What may be asked of the stored figures: the parameters of `/api/v1/...`, read and checked (DESIGN 4.5).

A parameter that is wrong by itself is a 422, parameters that contradict each other are a 400; both say in one line what
is wrong and what would be right. A parameter nobody knows is refused as well: a filter that is misspelt and silently
ignored answers another question than the one that was asked.
"""

import base64
import binascii
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from collector.answering.ondemand import OfInstance
from collector.errors import RefusedError
from collector.values.deltas import LatencyKey
from slo.quantity import QuantityError, whole_seconds
from slo.signals import SOURCES

MAX_LIMIT = 5_000
USUAL_LIMIT = 500
MAX_MOMENTS = 5_000
MAX_CURSOR_CHARS = 2_000
MAX_SPAN_S = 400 * 86400
LATEST_S = 4_102_444_800
"""The start of 2100: no moment beyond is asked for."""


def _moment(value: object) -> object:
    """Whole epoch seconds of a number, or of an RFC 3339 time."""
    text = str(value)
    if text.isascii() and text.isdigit():
        moment = int(text)
    else:
        try:
            read = datetime.fromisoformat(text)
        except ValueError:
            raise ValueError(f"{text!r} is no moment: write epoch seconds, or 2026-11-30T08:00:00Z") from None
        if read.tzinfo is None:
            raise ValueError(f"{text!r} names no zone: write 2026-11-30T08:00:00Z")
        moment = int(read.astimezone(UTC).timestamp())
    if not 0 <= moment <= LATEST_S:
        raise ValueError(f"{text!r} is beyond what is kept: write a moment from 1970 to 2099")
    return moment


def _seconds(value: object) -> object:
    try:
        seconds = whole_seconds(value)
    except QuantityError as error:
        raise ValueError(str(error)) from None
    if seconds > MAX_SPAN_S:
        raise ValueError(f"{value} is too long: at most {MAX_SPAN_S // 86400}d")
    return seconds


_MOMENT_FORMS = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": LATEST_S},
        {"type": "string", "pattern": r"^20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$"},  # noqa: E501
    ]
}  # fmt: skip
_LENGTH_FORM = {"type": "string", "pattern": r"^[1-9][0-9]{0,4}s$|^[1-9][0-9]{0,3}m$|^[1-9][0-9]{0,2}h$|^[1-9][0-9]?d$"}
Moment = Annotated[int, BeforeValidator(_moment), WithJsonSchema(_MOMENT_FORMS)]
Length = Annotated[int, BeforeValidator(_seconds), WithJsonSchema(_LENGTH_FORM)]
Text = Annotated[str, Field(max_length=255, pattern=r"^[^\x00]*$")]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Whose(_Asked):
    """Of whom: each filter that is given must hold."""

    environment: Text | None = Field(None, description="deployment environment; empty for none")
    service: Text | None = Field(None, description="service.name", examples=["chat"])
    model: Text | None = Field(None, description="model name; `*` is an objective over all its models")

    def filters(self) -> dict[str, Any]:
        """Column and value of each filter given."""
        named = ("environment", "service", "model", "signal", "source", "objective")
        found = {name: getattr(self, name, None) for name in named}
        return {name: value for name, value in found.items() if value is not None}


class Stretch(_Asked):
    """Which part of the past, and how much of it at once."""

    from_s: Moment | None = Field(None, alias="from", description="first moment: epoch seconds or RFC 3339")
    to_s: Moment | None = Field(None, alias="to", description="last moment, included; now when left out")
    limit: int = Field(USUAL_LIMIT, ge=1, le=MAX_LIMIT, description="rows of one answer at most")
    next: str | None = Field(
        None, max_length=MAX_CURSOR_CHARS, pattern=r"^[A-Za-z0-9_=-]*$", description="`next` of the answer before this"
    )

    @property
    def is_latest(self) -> bool:
        """Whether only the latest figures are asked for."""
        return self.from_s is None and self.to_s is None

    def span(self, now_s: int) -> tuple[int, int]:
        """First and last moment. Raises `RefusedError` for a stretch that ends before it begins, or of too many
        steps."""
        first_s, last_s = self.from_s or 0, now_s if self.to_s is None else self.to_s
        if self.from_s is not None and first_s > last_s:
            raise RefusedError(400, "from: lies after to: give the earlier moment as from")
        return first_s, last_s

    def after(self, kinds: Sequence[type]) -> list[Any] | None:
        """The key that the answer before this ended with, made of values of these kinds. Raises `RefusedError`."""
        if self.next is None:
            return None
        try:
            key = orjson.loads(base64.urlsafe_b64decode(self.next))
        except (binascii.Error, ValueError):
            key = None
        if not isinstance(key, list) or [type(one) for one in key] != list(kinds):
            raise RefusedError(
                400, "next: is not what an answer gave: pass its `next` unchanged, with the same filters"
            )
        return key


class Steps(Stretch):
    """A part of the past, thinned."""

    step_s: Length | None = Field(None, alias="step", description="one figure a step, the last in it; else all kept")

    def span(self, now_s: int) -> tuple[int, int]:
        """As of `Stretch`; raises `RefusedError` also for too many steps."""
        first_s, last_s = super().span(now_s)
        if self.step_s is not None and self.from_s is None:
            raise RefusedError(400, "step: has no beginning to count from: give from as well")
        if self.step_s is not None and (last_s - first_s) // self.step_s > MAX_MOMENTS:
            raise RefusedError(400, f"step: makes more than {MAX_MOMENTS} steps: use a longer step or a shorter time")
        return first_s, last_s


class PercentilesAsked(Whose, Steps):
    """The parameters of `/api/v1/percentiles`."""

    signal: Text | None = Field(None, description="which latency", examples=["ttft"])
    source: Text | None = Field(None, description="who measured: proxy, middleware, engine or otel")
    window_s: Length | None = Field(None, alias="window", description="length of the window", examples=["5m"])
    instance: Text | None = Field(
        None, description="one sender's figures as of now; needs service, model, signal and window; source is proxy"
    )

    def of_instance(self) -> OfInstance:
        """Whose figures are asked for. Raises `RefusedError` when that is not said."""
        lacking = [name for name in ("service", "model", "signal", "instance") if not getattr(self, name)]
        if self.window_s is None:
            lacking.append("window")
        if lacking:
            raise RefusedError(400, f"instance: needs {' and '.join(lacking)} as well")
        if not self.is_latest or self.next is not None or self.step_s is not None:
            raise RefusedError(400, "instance: is answered as of now: leave out from, to, step and next")
        names = self.service or "", self.model or "", self.signal or ""
        latency = LatencyKey(self.environment or "", *names, self.source or SOURCES[0])
        return OfInstance(latency, self.instance or "")


class BurnAsked(Whose, Steps):
    """The parameters of `/api/v1/burn`."""

    objective: Text | None = Field(None, description="name of the objective", examples=["ttft"])
    window_s: Length | None = Field(None, alias="window", description="length of the window", examples=["1h"])


class BudgetAsked(Whose, Steps):
    """The parameters of `/api/v1/budget`."""

    objective: Text | None = Field(None, description="name of the objective", examples=["ttft"])


class AlertsAsked(Whose, Stretch):
    """The parameters of `/api/v1/alerts`: whose alerts, and which transitions of them."""

    objective: Text | None = Field(None, description="name of the objective", examples=["ttft"])


class StatusAsked(Whose):
    """The parameters of `/api/v1/status`."""

    objective: Text | None = Field(None, description="name of the objective", examples=["ttft"])
    limit: int = Field(1_000, ge=1, le=MAX_LIMIT, description="objectives of one answer at most")
    offset: int = Field(0, ge=0, le=10_000_000, description="`next` of the answer before this")


class WhatIfAsked(_Asked):
    """The parameters of `/api/v1/whatif`."""

    service: Text = Field(description="service.name", examples=["chat"])
    objective: Text = Field(description="name of the objective", examples=["ttft"])
    environment: Text | None = Field(
        None, description="whose past; empty for none; needed where the service is heard from several"
    )
    percentile: Text = Field("", description="percent of the events to be good; as promised when left out")
    threshold: Text = Field("", description="in the signal's unit, as 400ms or 90%; as promised when left out")


def cursor(key: Sequence[Any]) -> str:
    """What to pass as `next` to go on after a row of this key."""
    return base64.urlsafe_b64encode(orjson.dumps(list(key))).decode()
