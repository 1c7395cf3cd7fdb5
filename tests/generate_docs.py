"""Writes the pages of docs/ that follow from the code; `tests/test_docs.py` compares them. Run by `make generate`."""

import os
import re
import subprocess
import sys
from pathlib import Path

from collector.schema import metadata
from slo import signals

ROOT = Path(__file__).parents[1]
COMMANDS = (
    "demo",
    "sidecar",
    "collector",
    "collector schema",
    "slo check",
    "slo schema",
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


def sql_page() -> str:
    """docs/sql.md."""
    parts = [
        "# SQL",
        "",
        "Generated from `collector/schema.py` by `make generate`.",
        "",
        "The collector's product: the same tables on SQLite and PostgreSQL. Times are integer epoch seconds.",
    ]
    for table in metadata.sorted_tables:
        parts += ["", f"## {table.name}", "", f"{table.comment}", "", "| column | type | meaning |", "|---|---|---|"]
        for column in table.columns:
            key = " (key)" if column.primary_key else ""
            parts.append(f"| `{column.name}` | {column.type}{key} | {column.comment} |")
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


PAGES = {"docs/signals.md": signals_page, "docs/sql.md": sql_page, "docs/cli.md": cli_page}


def main() -> None:
    """Write every generated page."""
    for name, page in PAGES.items():
        (ROOT / name).write_text(page())


if __name__ == "__main__":
    main()
