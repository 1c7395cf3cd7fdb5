"""Where and how telemetry is exported, from the standard `OTEL_*` environment (OpenTelemetry specification,
"OTLP exporter configuration" and "SDK environment variables") and `--otlp-endpoint`.

Pure: the environment is an argument. Nothing is exported unless an endpoint is named. A value that cannot be read is
a `SettingError` saying what would be right.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from sidecar import limits

Lane = Literal["traces", "metrics"]
Protocol = Literal["http/protobuf", "grpc"]
METRIC_INTERVAL_S = 10.0
SPAN_DELAY_S = 5.0
SHORTEST_MS = 10  # between two exports: more often would keep the process from its requests
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class SettingError(ValueError):
    """An environment variable or flag with an impossible value."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where one kind of telemetry goes."""

    url: str
    protocol: Protocol
    headers: tuple[tuple[str, str], ...]
    timeout_s: float
    gzip: bool
    certificate: str | None
    client_certificate: str | None
    client_key: str | None


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """Everything that the exporter is told; a lane without an endpoint is not exported."""

    traces: Endpoint | None
    metrics: Endpoint | None
    delta: bool = True
    metric_interval_s: float = METRIC_INTERVAL_S
    span_delay_s: float = SPAN_DELAY_S
    span_batch: int = limits.SPAN_BATCH
    span_queue: int = limits.SPAN_QUEUE


def read(environ: Mapping[str, str], *, endpoint: str | None = None) -> ExportSettings:
    """The settings of `environ`; `endpoint` (a base URL) takes the place of OTEL_EXPORTER_OTLP_ENDPOINT."""
    off = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    preference = environ.get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta").strip().lower()
    if preference not in ("delta", "cumulative", "lowmemory"):
        raise SettingError(
            f"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE={preference} is unknown: use delta or cumulative"
        )
    queue = _number(environ, "OTEL_BSP_MAX_QUEUE_SIZE", limits.SPAN_QUEUE, low=1)
    interval_ms = _number(environ, "OTEL_METRIC_EXPORT_INTERVAL", METRIC_INTERVAL_S * 1000, low=SHORTEST_MS)
    delay_ms = _number(environ, "OTEL_BSP_SCHEDULE_DELAY", SPAN_DELAY_S * 1000, low=SHORTEST_MS)
    batch = _number(environ, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", limits.SPAN_BATCH, low=1)
    return ExportSettings(
        traces=None if off else _endpoint(environ, "traces", endpoint),
        metrics=None if off else _endpoint(environ, "metrics", endpoint),
        delta=preference != "cumulative",
        metric_interval_s=interval_ms / 1000,
        span_delay_s=delay_ms / 1000,
        span_batch=int(min(queue, batch)),
        span_queue=int(queue),
    )


def _endpoint(environ: Mapping[str, str], lane: Lane, base: str | None) -> Endpoint | None:
    def setting(name: str) -> str | None:
        own = environ.get(f"OTEL_EXPORTER_OTLP_{lane.upper()}_{name}", "").strip()
        return own or environ.get(f"OTEL_EXPORTER_OTLP_{name}", "").strip() or None

    if environ.get(f"OTEL_{lane.upper()}_EXPORTER", "otlp").strip() == "none":
        return None
    own = None if base else environ.get(f"OTEL_EXPORTER_OTLP_{lane.upper()}_ENDPOINT", "").strip()
    url = own or base or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip()
    if not url:
        return None
    protocol = setting("PROTOCOL") or "http/protobuf"
    if protocol not in ("http/protobuf", "grpc"):
        raise SettingError(f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol} is not spoken: use http/protobuf or grpc")
    wrong = SettingError(f"the OTLP endpoint {url} is no URL: write http://HOST:PORT")
    try:
        parts = urlsplit(url if "://" in url or protocol == "http/protobuf" else f"http://{url}")
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        raise wrong from None
    if not named:
        raise wrong
    if protocol == "http/protobuf" and not own:
        url = f"{url.rstrip('/')}/v1/{lane}"
    compression = setting("COMPRESSION") or "none"
    if compression not in ("none", "gzip"):
        raise SettingError(f"OTEL_EXPORTER_OTLP_COMPRESSION={compression} is not supported: use gzip or none")
    timeout = setting("TIMEOUT")
    return Endpoint(
        url=url if "://" in url else parts.geturl(),
        protocol="grpc" if protocol == "grpc" else "http/protobuf",
        headers=_headers(setting("HEADERS") or ""),
        timeout_s=limits.EXPORT_TIMEOUT_S
        if timeout is None
        else _at_least(1, "OTEL_EXPORTER_OTLP_TIMEOUT", timeout, "milliseconds") / 1000,
        gzip=compression == "gzip",
        certificate=setting("CERTIFICATE"),
        client_certificate=setting("CLIENT_CERTIFICATE"),
        client_key=setting("CLIENT_KEY"),
    )


def _headers(value: str) -> tuple[tuple[str, str], ...]:
    """`key=value,key2=value2`, both sides URL-encoded; what has no `=` is refused, without repeating it."""
    found = []
    for part in value.split(","):
        if not part.strip():
            continue
        key, equals, content = part.partition("=")
        name, text = unquote(key.strip()).lower(), unquote(content.strip())
        if not equals or not _TOKEN.fullmatch(name) or not text.isprintable() or not text.isascii():
            raise SettingError("OTEL_EXPORTER_OTLP_HEADERS: write name=value, separated by commas")
        found.append((name, text))
    return tuple(found)


def _number(environ: Mapping[str, str], name: str, default: float, *, low: float) -> float:
    value = environ.get(name, "").strip()
    return default if not value else _at_least(low, name, value, "a number")


def _at_least(low: float, name: str, value: str, unit: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if not low <= number < 1e12:
        raise SettingError(f"{name}={value} is out of range: write {unit} from {low:g} up")
    return number
