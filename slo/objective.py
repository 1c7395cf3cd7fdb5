"""slo.yaml: the one place where a target is written (DESIGN 4.2).

Takes files, gives frozen `Spec` values or raises `SpecError` with file:line:column for every fault found; nothing of
a faulty file is applied. Every number is read from its authored text (`quantity`); the same models give the JSON
Schema that editors use.
"""

import fnmatch
import hashlib
import json
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, WithJsonSchema, model_validator

from slo import quantity
from slo.fields import Duration, LabelName, Name, Share, Window
from slo.signals import OTHER_MODEL, SIGNALS, SYNTHETIC_CLASS
from slo.source import Document, Problem, SpecError, documents, faults, unreadable

DEFAULT_WINDOW_S = 28 * 86400
MAX_WINDOW_S = 400 * 86400
LATENCY_SIGNALS = ("ttft", "tpot", "e2e")
"""Of a request's own time: what a load from outside can be held against."""
STATE_SIGNALS = ("kv_occupancy", "queue")
"""Of an engine's state: their events are seconds, not requests."""

Notify = Literal["page", "ticket", "none"]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class PromptBytes(_Model):
    """Sizes of a request body's prompt, in bytes: from `at_least` up to, not including, `below`."""

    at_least: int = 0
    below: int | None = None

    def holds(self, size: int) -> bool:
        return size >= self.at_least and (self.below is None or size < self.below)


def _prompt_bytes(value: object) -> PromptBytes:
    if isinstance(value, PromptBytes):
        return value
    text = str(value).replace(" ", "")
    if (match := re.fullmatch(r"<(.+)", text)) and (below := quantity.size_bytes(match[1])):
        return PromptBytes(below=below)
    if match := re.fullmatch(r">=(.+)", text):
        return PromptBytes(at_least=quantity.size_bytes(match[1]))
    if match := re.fullmatch(r"(.+)\.\.(.+)", text):
        low, high = quantity.size_bytes(match[1]), quantity.size_bytes(match[2])
        if low < high:
            return PromptBytes(at_least=low, below=high)
    raise ValueError(f"{quantity.shown(value)!r} is no range of sizes: write <16k, >=16k or 16k..64k")


class Match(_Model):
    """Which requests an objective speaks of; each field given must hold."""

    model: str | None = Field(None, min_length=1, description="glob over the request's model name")
    class_: Name | None = Field(None, alias="class", description="request class, one of the spec's classes")
    prompt_bytes: Annotated[
        PromptBytes | None,
        BeforeValidator(lambda value: None if value is None else _prompt_bytes(value)),
        WithJsonSchema({"type": "string", "examples": ["<16k", ">=16k", "16k..64k"]}),
    ] = None

    @property
    def literal_model(self) -> str | None:
        """The model's name when the glob names exactly one."""
        return self.model if self.model and not any(c in self.model for c in "*?[") else None

    def holds_model(self, model: str) -> bool:
        return self.model is None or fnmatch.fnmatchcase(model, self.model)

    def holds(self, *, model: str, request_class: str | None, prompt_bytes: int) -> bool:
        """Whether a request belongs to the objective."""
        return (
            self.holds_model(model)
            and (self.class_ is None or self.class_ == request_class)
            and (self.prompt_bytes is None or self.prompt_bytes.holds(prompt_bytes))
        )


class TierSpec(_Model):
    """A burn alert set by hand: `budget` of the period's budget, spent within `long`."""

    name: Name
    budget: Share
    long: Window
    short: Window | None = None
    notify: Notify = "page"

    @model_validator(mode="after")
    def _shape(self) -> Self:
        if not 0 < self.budget <= 1:
            raise ValueError("budget: must be above 0 and at most 100%")
        if self.short is not None and self.short > self.long:
            raise ValueError(f"short: must not be longer than long, which is {quantity.duration_text(self.long)}")
        return self


class Alerts(_Model):
    """How an objective's burn is alerted on."""

    min_bad_events: int | None = Field(None, ge=1, le=1_000_000)
    tiers: tuple[TierSpec, ...] | None = Field(None, min_length=1, max_length=8)

    @model_validator(mode="after")
    def _names_once(self) -> Self:
        names = [tier.name for tier in self.tiers or ()]
        if len(set(names)) < len(names):
            raise ValueError("two tiers share a name: give each its own")
        return self


class PolicyStep(_Model):
    """What the team does when only `budget_left` of the budget is left."""

    budget_left: Share
    notify: Notify = "ticket"
    do: str = Field(min_length=1, max_length=500)


class Objective(_Model):
    """One promise: `target` of the requests it matches are good, over `window`."""

    name: Name
    signal: Literal["ttft", "tpot", "e2e", "availability", "kv_occupancy", "queue"]
    percentile: Share | None = None
    target: Share | None = None
    threshold: Decimal | None = Field(None, json_schema_extra={"type": ["string", "number"], "examples": ["500ms"]})
    window: Window = DEFAULT_WINDOW_S
    match: Match = Match()
    owner: Name | None = None
    labels: dict[LabelName, str] = Field(default_factory=dict, max_length=20)
    runbook_url: str | None = Field(None, pattern=r"^https?://")
    patience: Duration | None = None
    stall: Duration | None = None
    min_output_tokens: int | None = Field(None, ge=2, le=1_000_000)
    alerts: Alerts = Alerts()
    policy: tuple[PolicyStep, ...] = Field((), max_length=10)

    @model_validator(mode="before")
    @classmethod
    def _authored(cls, data: Any) -> Any:
        """Read the threshold by the signal's own unit, where both are there to read."""
        if not isinstance(data, dict) or "threshold" not in data:
            return data
        signal = SIGNALS.get(str(data.get("signal")))
        if signal is None:  # the signal's own fault is said; in what unit to read the threshold is not known
            return {key: value for key, value in data.items() if key != "threshold"}
        read = {"duration": quantity.duration_s, "share": quantity.share, "count": quantity.number}.get(
            signal.threshold
        )
        if read is None:
            raise ValueError(f"threshold: signal {signal.name} takes no threshold: remove it")
        try:
            return {**data, "threshold": read(data["threshold"])}
        except quantity.QuantityError as error:
            raise ValueError(f"threshold: {error}") from None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        self._check_target()
        self._check_threshold()
        for field, signal in (("patience", "availability"), ("stall", "tpot"), ("min_output_tokens", "tpot")):
            if getattr(self, field) is not None and self.signal != signal:
                raise ValueError(f"{field}: belongs to signal {signal}, not {self.signal}: remove it")
        if not 60 <= self.window <= MAX_WINDOW_S:
            raise ValueError("window: must be from 1m to 400d")
        for index, tier in enumerate(self.alerts.tiers or ()):
            self._check_tier(f"alerts.tiers.{index}", tier)
        if len({step.budget_left for step in self.policy}) < len(self.policy):
            raise ValueError("policy: two steps share a budget_left: make one of them")
        return self

    def _check_tier(self, path: str, tier: TierSpec) -> None:
        """Refuse an alert that can never fire (the algebra is that of `burn`)."""
        if tier.long > self.window:
            window = quantity.duration_text(self.window)
            raise ValueError(f"{path}.long: is longer than the objective's window, {window}: use a shorter one")
        needed = tier.budget * self.window / tier.long * self.allowed_bad
        if needed >= 1:
            raise ValueError(
                f"{path}.budget: tier {tier.name} can never fire: it needs more than "
                f"{quantity.percent_text(round(needed, 3))} bad events; use a smaller budget or a longer window"
            )

    def _check_target(self) -> None:
        if (self.percentile is None) == (self.target is None):
            raise ValueError("give either percentile or target, as percentile: 95 or target: 99.9%")
        if not 0 < self.goal < 1:
            field = "target" if self.percentile is None else "percentile"
            raise ValueError(
                f"{field}: {quantity.percent_text(self.goal)} leaves "
                f"{'no error budget: use less, as 99.9%' if self.goal >= 1 else 'nothing promised: use more than 0'}"
            )

    def _check_threshold(self) -> None:
        kind = SIGNALS[self.signal].threshold
        if self.threshold is None and kind != "none":
            example = {"duration": "500ms", "share": "90%", "count": "10"}[kind]
            raise ValueError(f"threshold: signal {self.signal} needs one, as threshold: {example}")
        if kind == "share" and self.threshold is not None and not 0 < self.threshold < 1:
            raise ValueError("threshold: a share of the KV cache is above 0 and under 100%")

    @property
    def goal(self) -> Decimal:
        """The target as a fraction: the share of events that must be good."""
        return self.percentile if self.percentile is not None else self.target or Decimal(0)

    @property
    def allowed_bad(self) -> Decimal:
        """The share of events that may be bad."""
        return 1 - self.goal

    @property
    def min_tokens(self) -> int:
        """Output tokens from which a request has a judged TPOT."""
        return self.min_output_tokens or 2

    @property
    def stall_s(self) -> Decimal:
        """Silence after which a running stream is bad at once."""
        return self.stall if self.stall is not None else Decimal(10)

    @property
    def hash(self) -> str:
        """Twelve hex digits over every field that decides good or bad, so not the target: a changed threshold
        starts a new series and never mixes with the old one."""
        deciding = {
            "signal": self.signal,
            "threshold": None if self.threshold is None else quantity.plain(self.threshold),
            "match": self.match.model_dump(mode="json"),
            "patience": None if self.patience is None else quantity.plain(self.patience),
            "stall": quantity.plain(self.stall_s) if self.signal == "tpot" else None,
            "min_output_tokens": self.min_tokens if self.signal == "tpot" else None,
        }
        return hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:12]


class Spec(_Model):
    """The objectives of one service."""

    service: Name
    environment: str = Field("", max_length=63)
    classes: tuple[Name, ...] = Field((), max_length=20)
    elastic: bool = False
    objectives: tuple[Objective, ...] = Field(min_length=1, max_length=200)

    @model_validator(mode="after")
    def _whole(self) -> Self:
        seen: set[str] = set()
        for index, objective in enumerate(self.objectives):
            if objective.name in seen:
                raise ValueError(f"objectives.{index}.name: objective {objective.name} stands twice: rename one")
            seen.add(objective.name)
            if objective.match.class_ is not None and objective.match.class_ not in self.classes:
                raise ValueError(
                    f"objectives.{index}.match.class: {objective.match.class_} is not in classes: add it there"
                )
        if SYNTHETIC_CLASS in self.classes:
            raise ValueError(f"classes: {SYNTHETIC_CLASS} always exists and is never judged: remove it")
        return self

    @property
    def owner(self) -> str | None:
        """Who owns the service as a whole: the owner of its objectives, where they have one and the same."""
        owners = {objective.owner for objective in self.objectives}
        return owners.pop() if len(owners) == 1 else None

    @property
    def hash(self) -> str:
        """Sixteen hex digits over the whole spec, 2s and 2.0s being the same: shows a half-rolled fleet."""
        meant = json.dumps(self.model_dump(), default=quantity.plain, sort_keys=True)
        return hashlib.sha256(meant.encode()).hexdigest()[:16]

    @property
    def literal_models(self) -> tuple[str, ...]:
        """Models that objectives name literally: their label sets can start at 0."""
        names = {objective.match.literal_model for objective in self.objectives} - {None, OTHER_MODEL}
        return tuple(sorted(name for name in names if name))


def load(paths: Iterable[str | Path]) -> tuple[Spec, ...]:
    """The specs of files and folders (`*.yaml`, `*.yml`, sorted), each service once.

    Raises `SpecError` with every problem of every file; a missing or unreadable file is a problem like any other.
    """
    read: list[tuple[Spec, Document]] = []
    problems: list[Problem] = []
    for path in paths:
        for file in _files(Path(path), problems):
            _read(file, read, problems)
    owners: dict[str, str] = {}
    for spec, document in read:
        if spec.service in owners:
            message = f"service {spec.service} is already described in {owners[spec.service]}: merge the two"
            problems.append(document.problem(("service",), message))
        owners.setdefault(spec.service, document.file)
    if problems:
        raise SpecError(problems)
    return tuple(spec for spec, _ in read)


def parse(text: str, file: str = "slo.yaml") -> tuple[Spec, ...]:
    """The specs of one file's text; raises `SpecError`."""
    read: list[tuple[Spec, Document]] = []
    problems: list[Problem] = []
    _parse(text, file, read, problems)
    if problems:
        raise SpecError(problems)
    return tuple(spec for spec, _ in read)


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of one slo.yaml document, for editors and other tools."""
    schema = Spec.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "firsttoken slo.yaml"}


def _files(path: Path, problems: list[Problem]) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        files = sorted(file for file in path.iterdir() if file.suffix in (".yaml", ".yml"))
    except OSError as error:
        problems.append(unreadable(path, error))
        return []
    if not files:
        problems.append(Problem(str(path), 1, 1, "a folder without a .yaml file: put a spec there"))
    return files


def _read(file: Path, read: list[tuple[Spec, Document]], problems: list[Problem]) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(unreadable(file, error))
    else:
        _parse(text, str(file), read, problems)


def _parse(text: str, file: str, read: list[tuple[Spec, Document]], problems: list[Problem]) -> None:
    try:
        found = documents(text, file)
    except SpecError as error:
        problems.extend(error.problems)
        return
    if not found:
        problems.append(Problem(file, 1, 1, "an empty file: write service: and objectives:"))
    for document in found:
        try:
            read.append((Spec.model_validate(document.data), document))
        except ValidationError as error:
            problems.extend(faults(document, error, json_schema()))
