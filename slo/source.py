"""YAML with a memory of where everything stood: text in, plain values and their positions out.

PyYAML's own constructor keeps the last of two equal keys silently, turns 99.9 into a float and forgets lines. This
room composes the node tree instead and walks it once: scalars that look like numbers become Decimal from their text,
a repeated key or an alias is refused, and the position of every key and value is kept under its path, which is also
the `loc` that pydantic names in its errors.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from difflib import get_close_matches
from os import PathLike
from typing import Any

import yaml
from pydantic import ValidationError

from slo.quantity import shown

MAX_FILE_BYTES = 1 << 20
MAX_NODES = 50_000

Path = tuple[str | int, ...]
_OF_A_KEY = "[key]"
"""What pydantic puts behind a key that is wrong itself."""
_NUMBER = re.compile(r"-?[0-9]*\.?[0-9]+")


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a spec file: where it stands, and what is wrong and what would be right."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class SpecError(ValueError):
    """A spec that cannot be used; carries every problem found, each with its position. Nothing of it was applied."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))


def unreadable(file: str | PathLike[str], error: OSError | UnicodeDecodeError) -> Problem:
    """The problem of a file that gives no text."""
    name = os.fspath(file)
    if isinstance(error, UnicodeDecodeError):
        return Problem(name, 1, 1, "not UTF-8 text: save it as that")
    mend = ": write it, or name the one there is" if isinstance(error, FileNotFoundError) else ""
    return Problem(name, 1, 1, f"cannot be read: {error.strerror or error}{mend}")


@dataclass(slots=True)
class Document:
    """One YAML document as plain values, with the position of each path."""

    file: str
    data: object = None
    marks: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def problem(self, path: Path, message: str) -> Problem:
        """A problem at the nearest position known for `path`."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.marks:
                line, column = self.marks[path[:end]]
                return Problem(self.file, line, column, message)
        return Problem(self.file, 1, 1, message)


def documents(text: str, file: str) -> list[Document]:
    """Every non-empty document of `text`. Raises `SpecError` on bad YAML, a repeated key or an alias."""
    if len(text.encode()) > MAX_FILE_BYTES:
        raise SpecError([Problem(file, 1, 1, f"more than {MAX_FILE_BYTES} bytes: a spec is a short file")])
    try:
        nodes = list(_composed(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise SpecError([Problem(file, line, column, f"not YAML: {error.problem or error.context}")]) from None
    except (yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(error).split()) if isinstance(error, yaml.YAMLError) else "nested too deep"
        raise SpecError([Problem(file, 1, 1, f"not YAML: {said}")]) from None
    found = [_Walk(Document(file)).read(node) for node in nodes if node is not None]
    return [document for document in found if document.data is not None]


def _composed(text: str) -> Iterator[yaml.Node | None]:
    yield from yaml.compose_all(text, Loader=yaml.SafeLoader)


class _Walk:
    """The one walk over a document's nodes; keeps the nodes seen, to refuse aliases and endless trees."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._seen: set[int] = set()

    def read(self, root: yaml.Node) -> Document:
        self._document.data = self._value(root, ())
        return self._document

    def _fail(self, node: yaml.Node, message: str) -> SpecError:
        mark = node.start_mark
        return SpecError([Problem(self._document.file, mark.line + 1, mark.column + 1, message)])

    def _value(self, node: yaml.Node, path: Path) -> object:
        if id(node) in self._seen:
            raise self._fail(node, "YAML aliases are not read here: write the value out")
        self._seen.add(id(node))
        if len(self._seen) > MAX_NODES:
            raise self._fail(node, f"more than {MAX_NODES} values: a spec is a short file")
        self._document.marks.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, object]:
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._fail(key_node, "a key must be plain text")
            if key == "<<":
                raise self._fail(key_node, "YAML merge keys are not read here: write the values out")
            if key in values:
                raise self._fail(key_node, f"key {key} stands twice: keep one")
            self._document.marks[(*path, key)] = (key_node.start_mark.line + 1, key_node.start_mark.column + 1)
            values[key] = self._value(value_node, (*path, key))
        return values

    def _scalar(self, node: yaml.Node) -> object:
        text = str(node.value)
        if node.tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
            return _decimal(text)
        if node.tag == "tag:yaml.org,2002:bool":
            return text.lower() in ("true", "yes", "on")
        if node.tag == "tag:yaml.org,2002:null":
            return None
        return text


def _decimal(text: str) -> object:
    """The number as authored; text that YAML calls a number and people do not (0x1F, 1_000, .inf) stays text."""
    return Decimal(text) if _NUMBER.fullmatch(text) else text


def faults(document: Document, error: ValidationError, schema: Mapping[str, Any]) -> Iterator[Problem]:
    """pydantic's complaints about `document`, each at its place and in our own words; `schema` knows the right keys."""
    found = error.errors(include_url=False)
    for fault in found:
        path = fault["loc"][:-1] if fault["loc"][-1:] == (_OF_A_KEY,) else fault["loc"]
        if fault["type"] == "too_short" and any(other["loc"][:-1][: len(path)] == path for other in found):
            continue  # pydantic counts a list whose items are faulty as empty: say only what is wrong with the items
        message = fault["msg"].removeprefix("Value error, ")
        # A check of a whole model names its field in front: "threshold: ..." or "objectives.1.name: ...".
        if head := re.match(r"([a-z_]+(?:\.[a-z0-9_]+)*): ", message):
            named = tuple(int(part) if part.isdigit() else part for part in head[1].split("."))
            path, message = (*path, *named), message[head.end() :]
        near = get_close_matches(str(path[-1]), _keys_at(schema, path[:-1]), 1) if path else []
        if fault["type"] == "extra_forbidden" and near:
            said = f"unknown key: write {near[0]}, or remove it"
        else:
            said = _explained(fault, message)
        yield document.problem(path, f"{_at(path)}: {said}" if path else said)


def _keys_at(schema: Mapping[str, Any], path: Path) -> list[str]:
    """The keys that a JSON Schema knows at a place."""
    node = _unfolded(schema, schema)
    for part in path:
        below = node.get("items", {}) if isinstance(part, int) else node.get("properties", {}).get(part, {})
        node = _unfolded(schema, below)
    return list(node.get("properties", ()))


def _unfolded(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a node refers to: of several forms the one that holds others."""
    for form in node.get("anyOf", [node]):
        found: Mapping[str, Any] = schema["$defs"][form["$ref"].rpartition("/")[2]] if "$ref" in form else form
        if found.get("type") in ("object", "array"):
            return found
    return {}


def _at(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


_NEEDS_A_LIST = "a list is needed: write each item behind a dash, or all in [ ]"
_NEEDS_KEYS = "keys with values are needed: write {{key: value, ...}}"
_OURS = {
    "extra_forbidden": "unknown key: check the spelling, or remove it",
    "missing": "missing: it must be given",
    "tuple_type": _NEEDS_A_LIST,
    "list_type": _NEEDS_A_LIST,
    "model_type": _NEEDS_KEYS,
    "dict_type": _NEEDS_KEYS,
    "model_attributes_type": _NEEDS_KEYS,
    "too_short": "is empty: write at least {min_length}, or remove it",
    "too_long": "holds more than {max_length}: remove some",
    "string_too_short": "is empty: write some text, or remove it",
    "string_too_long": "is longer than {max_length} characters: shorten it",
    "string_type": "{input} is not text: put it in quotes",
    "bool_type": "{input} is neither true nor false",
    "bool_parsing": "{input} is neither true nor false",
    "int_type": "{input} is not a whole number",
    "int_parsing": "{input} is not a whole number",
    "int_from_float": "{input} is not a whole number",
    "greater_than_equal": "{input} is too small: {ge} is the least",
    "less_than_equal": "{input} is too large: {le} is the most",
    "string_pattern_mismatch": "{input} does not match {pattern}",
    "literal_error": "{input} is not allowed: use {expected}",
}
"""pydantic's kinds of error that a spec can have, in words of YAML rather than of Python."""


def _explained(fault: Any, message: str) -> str:
    """What is wrong and what would be right; a check of our own has said so itself in `message`."""
    words = _OURS.get(fault["type"], "{input}: {message}" if fault["type"] != "value_error" else "{message}")
    return words.format_map({**fault.get("ctx", {}), "input": shown(fault["input"]), "message": message})
