"""What words of a command line or an environment mean: addresses, numbers, tokens, the spec and its service.

`flag` is how the user wrote it, `--admin` or `FIRSTTOKEN_ADMIN`. Whatever is wrong is a `UsageError`, one line that
says what, where and what would be right.
"""

import importlib.metadata
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sidecar.address import Address, is_local, parse

if TYPE_CHECKING:
    from slo.objective import Spec

DEFAULT_SLO = Path("slo.yaml")
DEFAULT_SERVICE = "unknown_service"


class UsageError(Exception):
    """Bad input; the message is one line for the user."""


def version() -> str:
    """The version of the installed distribution."""
    try:
        return importlib.metadata.version("firsttoken")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def number(flag: str, value: str, *, low: float, high: float = 1e15) -> float:
    """A number from `low` to `high`."""
    try:
        number = float(value)
    except ValueError:
        number = float("nan")
    if not low <= number <= high:
        bound = f"from {low:g} to {high:g}" if high < 1e15 else f"of at least {low:g}"
        raise UsageError(f"{flag} {value}: write a number {bound}")
    return number


def switch(flag: str, value: str) -> bool:
    """Whether a word of the environment switches something on; an empty one does not."""
    word = value.strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise UsageError(f"{flag}={value}: write 1 or 0")


def address(flag: str, value: str) -> Address:
    """`HOST:PORT`, an IPv6 host in brackets, or `unix:/PATH`."""
    try:
        return parse(value)
    except ValueError as error:
        raise UsageError(f"{flag} {value}: {error}") from None


def token(file: str | None, admin: Address | None, *, insecure: bool) -> str | None:
    """The admin token. A non-loopback address needs one, or an explicit --insecure."""
    if file is not None:
        try:
            token = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            why = (getattr(error, "strerror", None) or "it is no text").lower()
            raise UsageError(f"the token file {file} cannot be read: {why}: name a file that holds it") from None
        if not token:
            raise UsageError(f"the token file {file} is empty: put the token there")
        return token
    if not insecure and admin is not None and not is_local(admin):
        raise UsageError(
            f"the admin address {admin} is not loopback: "
            "give --token-file FILE (FIRSTTOKEN_TOKEN_FILE), or --insecure if that is meant"
        )
    return None


def readable(written: str, file: str) -> None:
    """That a file can be read: found out now, not at its first use. `written` is how the user named it."""
    try:
        Path(file).read_bytes()
    except OSError as error:
        raise UsageError(f"{written} cannot be read: {error.strerror}: name a PEM file") from None


def spec_paths(named: list[str] | None, environ: Mapping[str, str]) -> list[Path]:
    """The spec's files: a missing default is no spec, a missing named one is a fault that loading reports."""
    if named is None and (value := environ.get("FIRSTTOKEN_SLO")):
        named = value.split(os.pathsep)
    if named is not None:
        return [Path(name) for name in named]
    return [DEFAULT_SLO] if DEFAULT_SLO.exists() else []


def load(paths: list[Path]) -> "tuple[Spec, ...]":
    """The specs in these files, one a service."""
    from slo.objective import load
    from slo.source import SpecError

    try:
        return load(paths)
    except SpecError as error:
        raise UsageError("; ".join(map(str, error.problems))) from None


def service(name: str | None, specs: "tuple[Spec, ...]", *, strict: bool) -> "tuple[str, Spec | None]":
    """The service and its spec. `strict`: the spec was named, so that a service it does not describe is a mistake."""
    described = ", ".join(spec.service for spec in specs)
    if name is None and len(specs) > 1:
        raise UsageError(
            f"the spec describes several services ({described}): choose one with --service (FIRSTTOKEN_SERVICE)"
        )
    if name is None:
        return (specs[0].service, specs[0]) if specs else (DEFAULT_SERVICE, None)
    spec = next((spec for spec in specs if spec.service == name), None)
    if spec is None and specs:
        message = f"service {name} is not in the spec, which describes {described}"
        if strict:
            raise UsageError(f"{message}: correct the service or the spec")
        logging.getLogger(__name__).warning("%s: nothing is judged", message)
    return name, spec
