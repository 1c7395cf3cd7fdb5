"""The kinds of value that the keys of slo.yaml take: durations, shares and names, with what editors are told of them.

Each is read from its authored text, and refused in words that say what would be right.
"""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from slo import quantity

NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}")
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
"""Prometheus's; Alertmanager refuses every alert that comes with one that has another."""


def _text(pattern: str, example: str) -> WithJsonSchema:
    return WithJsonSchema({"type": ["string", "number"], "pattern": pattern, "examples": [example]})


_DURATION = _text(r"^\d+(\.\d+)?(ms|s|m|h|d|w)$", "500ms")
_PERCENT = _text(r"^\d+(\.\d+)?\s*%?$", "99.9%")
Duration = Annotated[Decimal, BeforeValidator(quantity.duration_s), _DURATION]
Window = Annotated[int, BeforeValidator(quantity.whole_seconds), _DURATION]
Share = Annotated[Decimal, BeforeValidator(quantity.share), _PERCENT]


def _name(value: object) -> str:
    if value is None or isinstance(value, bool):  # YAML's reading of an empty place, and of `on` or `no`
        raise ValueError(f"{quantity.shown(value)} is not a name: write one, in quotes where it is a word of YAML")
    text = str(value)
    if NAME.fullmatch(text) is None:
        raise ValueError(
            f"{quantity.shown(value)!r} is not a name: use letters, digits, dot, dash and underscore, at most 63"
        )
    return text


def _label(text: str) -> str:
    if LABEL_NAME.fullmatch(text) is None:
        raise ValueError(f"{quantity.shown(text)!r} is no label name: use letters, digits and underscore")
    return text


Name = Annotated[str, BeforeValidator(_name)]
LabelName = Annotated[str, AfterValidator(_label)]
