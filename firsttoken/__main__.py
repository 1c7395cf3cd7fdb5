"""`firsttoken ...` and `python -m firsttoken`: one command whose subcommands live in the packages.

A package is imported only when its subcommand is asked for, so that a sidecar's machine needs no collector's libraries;
an extra that is missing is named in one line. The demo server is a stranger: it is run, never imported.
"""

import errno
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

OURS = ("firsttoken", "slo", "sidecar", "collector", "alerts", "dashboards", "capacity")
INTERRUPTED = 130
PIPE_CLOSED = 141  # as a shell shows a program that SIGPIPE ended


@dataclass(frozen=True, slots=True)
class Subcommand:
    """`room` is the module whose `main(argv)` runs it; `extra` what must be installed for it, '' for nothing."""

    name: str
    about: str
    room: str
    extra: str = ""


# Modules by which an extra is known to be installed: those a room may first meet long after its start.
PROBES = {
    "sidecar": ("uvloop", "httptools", "orjson", "opentelemetry.sdk"),
    "collector": ("fastapi", "uvicorn", "sqlalchemy", "orjson", "opentelemetry.proto"),
    "dashboards": ("grafanalib",),
    "capacity": ("orjson", "httptools"),
    "engine": ("torch", "fastapi", "uvicorn"),
}
PROBES["demo"] = (*PROBES["sidecar"], *PROBES["collector"], *PROBES["capacity"], *PROBES["engine"])
STRANGER = "demo_server"
SUBCOMMANDS = {
    subcommand.name: subcommand
    for subcommand in (
        Subcommand("demo", "the whole story on one machine: load, incident, page, recovery", ".demo", "demo"),
        Subcommand(
            "sidecar", "measure one inference server: streaming proxy, or scrape only", "sidecar.cli", "sidecar"
        ),
        Subcommand(
            "collector", "OTLP in, SQL out, burn rates, budgets, alerts, status page", "collector.cli", "collector"
        ),
        Subcommand("slo", "check a spec and show what its alerts can do; import and export others; schema", "slo.cli"),
        Subcommand(
            "slo replay",
            "what a spec would have cost over the stored past",
            "collector.replaying.replay_cli",
            "collector",
        ),
        Subcommand("alerts", "build and check Prometheus rules and Alertmanager routes", "alerts.cli"),
        Subcommand("dashboards", "build Grafana dashboards", "dashboards.cli", "dashboards"),
        Subcommand("capacity", "load a server and see how much the contract allows", "capacity.cli", "capacity"),
        Subcommand("demo-server", "the bundled engine alone", STRANGER, "demo"),
        Subcommand("status", "a collector's objectives in the terminal", ".status"),
        Subcommand(
            "doctor", "what is missing or wrong in a running stack, each with its fix", ".doctor.cli", "sidecar"
        ),
    )
}


def main(argv: list[str] | None = None) -> int:
    """Run the subcommand that the arguments name; returns its exit code."""
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help", "help"):
        _help()
        return 0
    if name in ("-V", "--version"):
        print(f"firsttoken {version('firsttoken')}")
        return 0
    if rest and f"{name} {rest[0]}" in SUBCOMMANDS:  # a word of its own, of another package than its siblings
        return _run(SUBCOMMANDS[f"{name} {rest[0]}"], rest[1:])
    if name not in SUBCOMMANDS:
        print(f"firsttoken: there is no {name!r}: use one of {', '.join(SUBCOMMANDS)}", file=sys.stderr)
        return 2
    return _run(SUBCOMMANDS[name], rest)


def _run(subcommand: Subcommand, argv: list[str]) -> int:
    probes = PROBES["engine"] if subcommand.room == STRANGER else PROBES.get(subcommand.extra, ())
    if not all(_is_installed(module) for module in probes):
        return _lacks(subcommand)
    if subcommand.room == STRANGER:
        os.execv(sys.executable, [sys.executable, "-m", STRANGER, *argv])  # noqa: S606  becomes that program
    try:
        room = importlib.import_module(subcommand.room, package="firsttoken")
        run: Callable[[list[str]], int] = room.main
        code = run(argv)
        if sys.stdout is not None:  # it is None where the shell has closed it: `>&-`
            sys.stdout.flush()
        return code
    except ModuleNotFoundError as error:
        if not subcommand.extra or (error.name or "").partition(".")[0] in OURS:
            raise
        return _lacks(subcommand)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `... | head`: whoever reads has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as error:
        if error.errno != errno.ENOSPC or error.filename is not None:  # what is written to a file is told by its room
            raise
        print(f"firsttoken {subcommand.name}: the output cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # else what is still kept back fails once more at the exit
        return 2


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _lacks(subcommand: Subcommand) -> int:
    line = f"firsttoken {subcommand.name}: needs the extra: pip install 'firsttoken[{subcommand.extra}]'"
    print(line, file=sys.stderr)
    return 2


def _help() -> None:
    width = max(map(len, SUBCOMMANDS))
    print("usage: firsttoken COMMAND ...\n\nLatency SLOs for LLM serving: measure, see, be paged, plan.\n")
    for subcommand in SUBCOMMANDS.values():
        print(f"  {subcommand.name:{width}}  {subcommand.about}")
    print("\n`firsttoken COMMAND --help` tells more; `firsttoken --version` tells the version.")


if __name__ == "__main__":
    sys.exit(main())
