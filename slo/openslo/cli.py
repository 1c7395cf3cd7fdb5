"""`firsttoken slo import` and `firsttoken slo export`: files in, one file out, there whole or not at all.

Exit codes: 0 everything was carried over, 1 something was left behind (what could be carried is written), 2 a file that
cannot be read or that holds nothing to carry.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from slo.objective import load
from slo.openslo import reading, sloth
from slo.openslo.carrying import checked, slo_yaml, specs, told
from slo.openslo.promise import Found
from slo.openslo.writing import openslo, said
from slo.output import put
from slo.source import Document, Problem, SpecError, documents, unreadable
from slo.words import visible

FORMATS = ("openslo",)


def run_import(args: argparse.Namespace) -> int:
    """Carry foreign specs over; returns the exit code."""
    try:
        found = checked(_read(args.files))
        made = specs(found)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    except ValueError as error:  # a whole spec that our rules refuse, though each of its objectives is fine
        print(f"firsttoken slo import: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    lines = [visible(line) for line in told(found, made)]
    if not made:
        print(
            "\n".join([*lines, "firsttoken slo import: nothing can be carried over, and nothing is written"]),
            file=sys.stderr,
        )
        return 1 if found.left else 2
    names = ", ".join(Path(file).name for file in args.files)
    first = f"Carried over from {visible(names)} by firsttoken slo import: read it, then run firsttoken slo check."
    return _written(args.out, slo_yaml(made, [first, *lines]), lines) or (1 if found.left else 0)


def run_export(args: argparse.Namespace) -> int:
    """Write slo.yaml in another format; returns the exit code."""
    try:
        made = load(args.files)
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    return _written(args.out, openslo(made), list(said(made)))


def _written(out: str | None, text: str, lines: Sequence[str]) -> int:
    """Put the text where it belongs, and say what became of each objective where people look."""
    if out is None:
        print(text, end="")
        for line in lines:
            print(line, file=sys.stderr)
        return 0
    path = Path(out)
    if path.is_file():
        print(f"firsttoken slo: --out {path} is there already: name a new file, or remove it", file=sys.stderr)
        return 2
    try:
        put(path, text)
    except OSError as error:
        print(f"firsttoken slo: --out {path} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    print("\n".join([*lines, str(path)]))
    return 0


def _read(files: Sequence[str]) -> Found:
    """What all files hold together. Raises SpecError with every problem."""
    parts: list[Found] = []
    problems: list[Problem] = []
    for file in files:
        try:
            parts.append(_found(file, documents(Path(file).read_text(encoding="utf-8"), file)))
        except SpecError as error:
            problems += error.problems
        except (OSError, UnicodeDecodeError) as error:
            problems.append(unreadable(file, error))
    if problems:
        raise SpecError(problems)
    return Found(
        tuple(one for part in parts for one in part.promises),
        tuple(one for part in parts for one in part.left),
        {service: made for part in parts for service, made in part.settings.items()},
        tuple(dict.fromkeys(note for part in parts for note in part.notes)),
    )


def _found(file: str, read: list[Document]) -> Found:
    if read and all(map(reading.is_openslo, read)):
        return reading.read(read)
    if read and all(map(sloth.is_sloth, read)):
        return sloth.read(read)
    right = f"apiVersion: {reading.VERSIONS[0]} or version: {sloth.VERSION}, one of the two in a file"
    strangers = [one for one in read if not (reading.is_openslo(one) or sloth.is_sloth(one))] or read
    message = f"neither OpenSLO v1 nor a spec of Sloth's: {right} is needed"
    raise SpecError([one.problem((), message) for one in strangers] or [Problem(file, 1, 1, "an empty file")])
