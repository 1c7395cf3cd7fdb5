"""What is known of one replica: from the result of `capacity certify`, or a rate by hand and what the objectives allow.

How a request fares that is alone and how long one stays at the certified rate are measured. By hand nothing is: then a
request alone is taken to need half of what each objective allows, so that the other half is left for waiting.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from capacity.errors import WorkloadError
from slo.capacity_result import SIZED
from slo.objective import LATENCY_SIGNALS, Objective, Spec
from slo.promised import Promised, changed, promised

DEFAULT_RESULT = "capacity-certify.json"
UNMEASURED_PART = 0.5
MOST = 1e12
"""Above any rate, time or number of tokens that a result can hold."""


@dataclass(frozen=True, slots=True)
class Alone:
    """Medians of a request that is alone on the server, in seconds; None is unknown."""

    ttft: float | None
    tpot: float | None
    e2e: float | None


@dataclass(frozen=True, slots=True)
class Measured:
    """One replica. `stay_s` is how long a request stays at the certified rate, None where nobody measured it;
    `mean_tokens` are those of the requests that it was certified with, and `promised` what was promised then."""

    source: str
    certified_rps: float
    refuted_rps: float | None
    alone: Alone
    stay_s: float | None
    mean_tokens: tuple[float, float] | None = None
    model: str | None = None
    binding: str | None = None
    promised: Promised | None = None


def measured(text: str | None, stored: object = None) -> Measured:
    """The replica that `--capacity` names: a rate, or certify's result, `SERVICE=` before it or not. Where it names
    none, that of the usual file, or else of the result that a database holds. Raises WorkloadError."""
    if text is None and not Path(DEFAULT_RESULT).exists():
        if stored is not None:
            return _of_result("the database's last certificate", stored)
        raise WorkloadError(
            f"--capacity is missing, and there is no {DEFAULT_RESULT}: write requests/s of one replica, or certify it"
        )
    try:
        rate_rps = None if text is None else float(text)
    except ValueError:
        rate_rps = None
    if rate_rps is None:
        return _of_file(Path((text or DEFAULT_RESULT).rpartition("=")[2]))
    if not 0 < rate_rps < float("inf"):
        raise WorkloadError(f"--capacity {text}: one replica takes more than 0 requests/s")
    return Measured("by hand", rate_rps, None, Alone(None, None, None), None)


def assumed(known: Measured, objectives: Sequence[Objective]) -> Measured:
    """The same with what nobody measured of a request that is alone: half of what the objectives allow."""
    alone = known.alone
    ttft, tpot, e2e = (_half(objectives, signal) for signal in LATENCY_SIGNALS)
    return replace(known, alone=Alone(alone.ttft or ttft, alone.tpot or tpot, alone.e2e or e2e))


def _half(objectives: Sequence[Objective], signal: str) -> float | None:
    allowed = min((float(one.threshold or 0) for one in objectives if one.signal == signal), default=None)
    return None if allowed is None else UNMEASURED_PART * allowed


def _of_file(path: Path) -> Measured:
    try:
        return _of_result(str(path), json.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise WorkloadError(f"--capacity {path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        return _of_result(str(path), None)


def _of_result(source: str, found: object) -> Measured:
    if not isinstance(found, dict) or "certified_rps" not in found or SIZED in found:
        raise WorkloadError(f"--capacity {source} is no result of capacity certify: name its JSON, or write requests/s")
    certified_rps = _number(found, "certified_rps")
    if certified_rps is None:
        raise WorkloadError(
            f"--capacity {source}: {found.get('says') or 'no rate was certified'}; nothing can be sized"
        )
    staying = _number(found, "peak_concurrency", "by_little") or _number(found, "peak_concurrency", "mean")
    model = _at(found, "settings", "model")
    binding = found.get("binding")
    return Measured(
        source,
        certified_rps,
        _number(found, "refuted_rps"),
        _alone(found),
        None if staying is None else staying / certified_rps,
        _tokens(_at(found, "settings", "mean_tokens")),
        model if isinstance(model, str) else None,
        binding if isinstance(binding, str) else None,
        promised(found),
    )


def refuse_for_less(known: Measured, spec: Spec) -> None:
    """Raise WorkloadError where it was certified for less than is promised today."""
    since = changed(known.promised, spec)
    if since.more:
        raise WorkloadError(f"--capacity {known.source} was certified for other promises: {since.text}; certify again")


def _alone(found: Mapping[str, object]) -> Alone:
    """As it was measured; a result of an earlier release does not say."""
    way = "heard", "alone", "facts", "summary"
    return Alone(*(_number(found, *way, signal, "p50") for signal in LATENCY_SIGNALS))


def _tokens(found: object) -> tuple[float, float] | None:
    match found:
        case [tokens_in, tokens_out]:
            mean_in, mean_out = _positive(tokens_in), _positive(tokens_out)
            return None if mean_in is None or mean_out is None else (mean_in, mean_out)
    return None


def _number(found: Mapping[str, object], *way: str) -> float | None:
    return _positive(_at(found, *way))


def _positive(value: object) -> float | None:
    """A number as it should stand in a result; None where it is anything else."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 < value <= MOST and math.isfinite(value) else None


def _at(found: object, *way: str) -> object:
    for name in way:
        found = found.get(name) if isinstance(found, dict) else None
    return found
