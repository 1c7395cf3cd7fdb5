"""What an installation brings along is free to be used at work: the licence of every package behind our extras."""

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement

EXTRAS = ("sidecar", "collector", "postgres", "clickhouse", "dashboards", "capacity", "gpu", "demo")
FREE = re.compile(
    r"apache|\bmit\b|bsd|isc\b|python software foundation|\bpsf|mozilla|mpl-2|unlicense|zlib|public domain|cc0|hpnd"
    r"|permission is hereby granted, free of charge",
    re.IGNORECASE,
)
"""Permissive ones, and the Mozilla licence, which asks for changes to its own files alone."""
BY_HAND = {"nvidia": "CUDA's own, which a CUDA build of torch brings: to be used, not to be changed"}


def behind(extras: tuple[str, ...]) -> dict[str, Distribution]:
    """Every distribution that an installation with these extras has, ours left out."""
    found: dict[str, Distribution] = {}
    waiting = [("firsttoken", extra) for extra in ("", *extras)]
    seen = set()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            one = distribution(name)
        except PackageNotFoundError:  # asked for on other platforms or Pythons alone
            continue
        found[name] = one
        for text in one.requires or ():
            asked = Requirement(text)
            if asked.marker is None or asked.marker.evaluate({"extra": extra}):
                waiting += [(asked.name.lower(), more) for more in ("", *asked.extras)]
    del found["firsttoken"]
    return found


def licence(of: Distribution) -> str:
    """All that its metadata says of it, one line; the head of its licence's own text where they say nothing."""
    told = of.metadata
    said = [*(told.get_all("License-Expression") or ()), *(told.get_all("License") or ())]
    said += [text for text in told.get_all("Classifier") or () if text.startswith("License")]
    texts = (file.read_text() for file in of.files or () if file.name.upper().startswith("LICEN"))
    return " ".join((" | ".join(said) or next(texts, "")).split())[:200]


PACKAGES = behind(EXTRAS)


def test_the_packages_behind_the_extras_are_found() -> None:
    assert {"fastapi", "sqlalchemy", "torch", "httptools", "pydantic"} <= set(PACKAGES)


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_a_package_is_free_to_be_used(name: str) -> None:
    if not name.startswith(tuple(BY_HAND)):
        assert FREE.search(licence(PACKAGES[name])), licence(PACKAGES[name])
