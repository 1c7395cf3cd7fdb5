"""Writes the pages of docs/ that follow from the code; `tests/test_docs.py` compares them. Run by `make generate`."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from sidecar import limits as sidecar_limits
from slo import signals
from tests.sql_page import sql_page

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "demo",
    "sidecar",
    "collector",
    "collector schema",
    "slo check",
    "slo schema",
    "slo replay",
    "alerts build",
    "alerts check",
    "dashboards build",
    "demo-server",
    "capacity load",
    "status",
)


def help_text(command: str) -> str:
    """What `firsttoken COMMAND --help` prints on a terminal of 100 columns."""
    done = subprocess.run(
        [sys.executable, "-m", "firsttoken", *command.split(), "--help"],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "100", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.rstrip()


def flags(text: str) -> set[str]:
    """Every long flag that a help text names."""
    return set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", text))


def signals_page() -> str:
    """docs/signals.md."""
    parts = [
        "# Signals on the wire",
        "",
        "Generated from `slo/signals.py` by `make generate`.",
        "",
        "Every series carries `service_name`, `model_name` where it has a model, and `environment` where it is set.",
    ]
    groups = (
        ("Exported by the sidecar over OTLP, and on its `/metrics`", signals.WIRE_METRICS),
        ("GPUs, beside a driver of NVIDIA's: the same way", signals.GPU_METRICS),
        ("The sidecar's word on itself, on its `/metrics`", signals.SIDECAR_METRICS),
        ("Computed by the collector, on its `/metrics`", signals.COLLECTOR_METRICS),
    )
    for title, metrics in groups:
        parts += ["", f"## {title}", "", "| OpenTelemetry | Prometheus | kind, unit | more labels | meaning |"]
        parts.append("|---|---|---|---|---|")
        for m in metrics:
            labels = ", ".join(f"`{label}`" for label in m.labels)
            row = f"| `{m.name}` | `{m.prometheus}` | {m.kind}, {m.unit} | {labels} | {m.description} |"
            parts.append(row.replace("|  |", "| |"))
    return "\n".join(parts) + "\n"


def cli_page() -> str:
    """docs/cli.md."""
    parts = ["# Commands", "", "Generated from the commands' own help by `make generate`.", ""]
    parts += [
        "Exit codes: 0 fine, 1 the check failed, 2 usage or bad input. Configuration: flag, then environment",
        "`FIRSTTOKEN_<FLAG>`, then default.",
    ]
    for command in COMMANDS:
        parts += ["", f"## firsttoken {command}", "", "```text", help_text(command), "```"]
    return "\n".join(parts) + "\n"


LIMIT = re.compile(r"^([A-Z_]+) = ([^#\n]+?)\s*(?:# (.*))?$")
COLLECTOR_LIMITS = (
    ("collector.body", "MAX_BODY_BYTES", "an OTLP/HTTP body beyond it is answered 413"),
    ("collector.body", "MAX_UNPACKED_BYTES", "a protobuf body that unpacks to more is answered 413"),
    ("collector.body", "MAX_JSON_BYTES", "a JSON body that unpacks to more is answered 413"),
    ("collector.body", "STEP_BYTES", "unpacked at a time; others have their turn between"),
    ("collector.intake", "BODY_TIMEOUT_S", "a body must be whole by then; else 408, DEADLINE_EXCEEDED by gRPC"),
    ("collector.intake", "ROOM_BYTES", "bodies in hand at a time; for more, the longest still coming is answered 503"),
    ("collector.intake", "INLINE_BYTES", "a longer body is read beside the event loop, one at a time"),
    ("collector.intake", "INLINE_JSON_BYTES", "the same of JSON"),
    ("collector.post", "DRAIN_BYTES", "of a refused body, let in so that its sender reads why"),
    ("collector.store", "MAX_WAITING", "bodies that wait for their commit; one more is answered 503 with Retry-After"),
    ("collector.connection", "HEAD_S", "a connection without a whole request head is closed after it"),
    ("collector.connection", "MAX_OPEN", "open HTTP connections; one more is closed at once"),
    ("collector.listener", "MAX_CONNECTIONS", "HTTP connections that are served; one more is answered 503"),
    ("collector.listener", "KEEP_ALIVE_S", "an idle HTTP connection is closed after it"),
    ("collector.listener", "MAX_FILES", "open files, asked of the system; fewer admit fewer connections"),
    ("collector.tls", "MAX_HANDSHAKES", "TLS handshakes of HTTP under way; one more is closed at once"),
    ("collector.rpc", "MAX_MESSAGE_BYTES", "a longer gRPC message, or one that unpacks to more: RESOURCE_EXHAUSTED"),
    ("collector.rpc", "MAX_READING", "gRPC messages that are read at a time; others wait"),
    ("collector.rpc", "MAX_CALLS", "gRPC calls in hand; one more is answered UNAVAILABLE with RetryInfo"),
    ("collector.rpc", "MAX_STREAMS", "gRPC calls of one connection; others wait at the sender"),
    ("collector.rpc", "MAX_OPEN", "open gRPC connections; one more is closed at once"),
    ("collector.rpc", "IDLE_S", "an idle gRPC connection is closed after it"),
    ("collector.rpc", "HANDSHAKE_S", "a gRPC connection must be made by then"),
    ("collector.rpc", "PING_S", "a silent gRPC peer is asked whether it is there"),
    ("collector.reader", "MAX_READERS", "questions asked of the database at a time; others wait"),
    ("collector.reader", "MAX_QUESTIONS", "questions in hand; one more is answered 503 with Retry-After"),
    (
        "collector.reader",
        "PATIENCE_S",
        "a question is answered by then, or broken off; as long it may wait for its turn",
    ),
    ("collector.asked", "MAX_LIMIT", "rows of one answer; more is asked for page by page"),
    ("collector.asked", "MAX_MOMENTS", "steps of one question; more are answered 400"),
    ("collector.service", "MAX_VIEWERS", "pages that are told of each tick; one more is answered 503"),
    ("collector.spec_watch", "WATCH_S", "`--watch-slo` looks this often; a change counts when two looks saw the same"),
    ("collector.wire", "MAX_ATTRIBUTES", "attributes of a resource, span or point that are read"),
    ("collector.wire", "MAX_NAME", "characters of an attribute that are kept"),
    ("collector.rollup", "FUTURE_S", "a point further ahead of now is refused by name"),
    ("collector.rollup", "MAX_STREAMS", "cumulative streams remembered; points of further ones are refused by name"),
    ("collector.points", "MAX_POINTS", "points of ours in one body; metrics beyond are refused by name"),
    ("collector.wire", "MAX_ATTRIBUTES", "attributes of a point, span or resource that are looked at"),
    ("collector.wire", "MAX_NAME", "characters kept of a key or value; the rest is cut"),
    ("collector.wire", "MAX_REASONS", "different faults told of one body; the rest is told as further faults"),
    ("collector.distribution", "MAX_BUCKETS", "buckets of a histogram; a point with more is refused by name"),
    ("collector.span_shapes", "MAX_COLUMNS", "models times latencies in the spans of one sender; the rest is `other`"),
    (
        "collector.admission",
        "MAX_LAYOUTS",
        "different sets of bucket bounds; histograms of further ones are refused by name",
    ),
    ("collector.admission", "MAX_SERVICES", "services; what comes from further ones is refused by name"),
    ("collector.fleet", "MAX_INSTANCES", "instances remembered; the longest silent is forgotten"),
    ("collector.measurement", "MAX_VALUE", "a larger figure is refused by name"),
    ("collector.receivers", "RESEND_S", "a firing alert is told again this often"),
    ("collector.receivers", "FIRES_FOR_S", "Alertmanager ends an alert that is not told again within it"),
    ("collector.retention", "ROWS_A_FOLD", "rows that one transaction folds, or those of one step where they are more"),
    ("collector.retention", "ROWS_A_DELETE", "rows that one transaction drops, likewise"),
    ("collector.sqlite_file", "WARN_BYTES", "a log of SQLite that a reader keeps longer than that is warned of"),
    ("collector.receivers", "TIMEOUT_S", "a receiver of alerts must take the connection by then"),
    ("collector.receivers", "ANSWER_S", "and must have answered by then"),
    ("collector.receivers", "BATCH", "alerts in one request to Alertmanager"),
    ("collector.webhook", "MAX_ALERTS", "alerts in one payload of the webhook; `truncatedAlerts` says how many more"),
    ("collector.notify", "MAX_NOTICES", "alerts that anybody is told of, the most urgent first"),
    ("collector.notify", "RETRY_LAST_S", "longest pause before a receiver that failed is told again"),
    ("collector.notify", "REFUSED_PAUSE_S", "the pause after an answer of the 4xx: somebody must mend something"),
)


def limits_page() -> str:
    """docs/limits.md."""
    parts = [
        "# Limits and timeouts",
        "",
        "Generated by `make generate`. Flags change some of them, see [commands](cli.md); the rest are fixed.",
        "",
        "## Sidecar",
        "",
        "| limit | value | what happens there |",
        "|---|---|---|",
    ]
    for line in (ROOT / "sidecar/limits.py").read_text().splitlines():
        if found := LIMIT.match(line):
            name, _, why = found.groups()
            parts.append(f"| `{name}` | {_value(sidecar_limits, name)} | {why or ''} |".replace("|  |", "| |"))
    parts += ["", "## Collector", "", "| limit | value | what happens there |", "|---|---|---|"]
    for room, name, why in COLLECTOR_LIMITS:
        parts.append(f"| `{name}` | {_value(importlib.import_module(room), name)} | {why} |")
    return "\n".join(parts) + "\n"


def _value(room: ModuleType, name: str) -> str:
    """A limit with its unit, which its name tells."""
    value = getattr(room, name)
    if name.endswith("_BYTES"):
        whole, unit = (value >> 20, "MiB") if value >= 1 << 20 else (value >> 10, "KiB")
        return f"{whole} {unit}"
    return f"{value:g} s" if name.endswith("_S") else f"{value:g}"


PAGES = {
    "docs/limits.md": limits_page,
    "docs/signals.md": signals_page,
    "docs/sql.md": sql_page,
    "docs/cli.md": cli_page,
}


def main() -> None:
    """Write every generated page."""
    for name, page in PAGES.items():
        (ROOT / name).write_text(page())


if __name__ == "__main__":
    main()
