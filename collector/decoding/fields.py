"""Where the fields of many protobuf messages stand, found for all of them in step.

Messages of one type that a protobuf library wrote hold their fields in the order of their numbers. So all of them are
walked together: at each field that the type has, those that have it next are read and moved on, by a few calls of
numpy however many they are. A message in which anything else stands (a field that the type does not name, or one out
of order) is not at its end after the last field, and `whole` says so: whoever asks reads that one by protobuf.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from collector.values.histogram import Counts, Floats

VARINT, FIXED64, BYTES = 0, 1, 2
MORE = 0x80
_VARINT_BYTES = 10
_NINE, _LONGEST_RUN = 9, 6
"""Bytes of a field of eight with its tag, and how many of them are looked for at once: they must fit into the pad."""
_PAD = bytes(64)
"""Behind the last message: what is absent is read there, as 0."""

Octets = NDArray[np.uint8]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Kind:
    """A field of a type: its number below 16, how the wire writes it, and whether it may come again."""

    number: int
    wire: int
    repeated: bool = False

    @property
    def tag(self) -> int:
        return self.number << 3 | self.wire


@dataclass(frozen=True, slots=True)
class Field:
    """A field of every message. `at` is where its value begins and `size` how many bytes it takes, all that repeat it
    together with what stands between; `value` is the number that a varint is."""

    has: Flags  # (messages)
    at: Counts  # (messages)
    size: Counts  # (messages)
    value: NDArray[np.uint64]  # (messages)


@dataclass(frozen=True, slots=True)
class Walked:
    """The fields of messages by their numbers; of those that are not `whole` nothing else holds."""

    data: Octets
    fields: dict[int, Field]
    whole: Flags  # (messages)

    def doubles(self, number: int) -> Floats:
        """A field of eight bytes as a double; 0 where it is absent."""
        found: Floats = self._eight(number, "<f8")
        return found

    def integers(self, number: int) -> Counts:
        """A field of eight bytes as a whole number, negative when it is beyond 63 bits; 0 where it is absent."""
        found: Counts = self._eight(number, "<i8")
        return found

    def signed(self, number: int) -> Counts:
        """A varint in zigzag."""
        value = self.fields[number].value
        found: Counts = (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)
        return found

    def inner(self, number: int, kinds: Iterable[Kind]) -> "Walked":
        """The fields of the messages that a field of bytes holds; of none where it is absent."""
        of = self.fields[number]
        return walk(self.data, of.at, of.at + of.size, kinds)

    def octets(self, number: int) -> Octets:
        """A field of bytes, that of one message behind that of the one before."""
        return np.frombuffer(b"".join(self.apart(number)), np.uint8)

    def apart(self, number: int) -> list[bytes]:
        """A field of bytes, that of each message."""
        of, octets = self.fields[number], self.data.tobytes()
        return [octets[at:end] for at, end in zip(of.at.tolist(), (of.at + of.size).tolist(), strict=True)]

    def _eight(self, number: int, kind: str) -> NDArray[Any]:
        """What a field's eight bytes are: each byte of the data is where some eight begin."""
        eights = np.ndarray((self.data.size - 7,), kind, self.data, strides=(1,))
        return eights[self.fields[number].at]


def in_step(messages: Sequence[bytes], kinds: Iterable[Kind]) -> Walked:
    """The fields of whole messages of one type; `kinds` are the type's, by ascending number."""
    # No tag is 0: what stands between two messages ends the first.
    data = np.frombuffer(b"\0".join((*messages, _PAD)), np.uint8)
    sizes = np.fromiter(map(len, messages), np.int64, len(messages))
    begins = np.cumsum(sizes + 1) - sizes - 1
    return walk(data, begins, begins + sizes, kinds)


def walk(data: Octets, begins: Counts, ends: Counts, kinds: Iterable[Kind]) -> Walked:
    """The same of messages that lie anywhere in `data`, which ends in a pad. What follows a message must be no field of
    it, or the message is not taken for whole."""
    at, nothing = begins.copy(), np.zeros(begins.size, np.int64)
    absent = Field(np.zeros(begins.size, np.bool_), nothing + _pad(data), nothing, nothing.astype(np.uint64))
    found: dict[int, Field] = {}
    for is_fixed, some in groupby(kinds, key=lambda kind: kind.wire == FIXED64 and not kind.repeated):
        run = list(some)
        for kind in run:
            if is_fixed and kind.number not in found:
                found.update(_fixed_run(data, at, [one for one in run if one.number not in found], absent))
            if kind.number not in found:
                found[kind.number] = _field(data, at, kind, absent)
    return Walked(data, found, at == ends)


def _fixed_run(data: Octets, at: Counts, kinds: Sequence[Kind], absent: Field) -> dict[int, Field]:
    """The first of some fields of eight bytes that all messages have next, one behind another: read in one step, and
    the messages moved on. None where a message has another field next."""
    if len(kinds) > _LONGEST_RUN or not at.size:
        return {}
    tags = data[at[:, None] + _NINE * np.arange(len(kinds))]
    count = 0
    while count < len(kinds) and (tags[:, count] == kinds[count].tag).all():
        count += 1
    eight = absent.size + 8
    has = ~absent.has
    found = {
        kind.number: Field(has, at + (_NINE * number + 1), eight, absent.value)
        for number, kind in enumerate(kinds[:count])
    }
    at += _NINE * count
    return found


def _field(data: Octets, at: Counts, kind: Kind, absent: Field) -> Field:
    """Read the field of those messages that have it next, and move them on."""
    has = data[at] == kind.tag
    count = np.count_nonzero(has)
    if not count:
        return absent
    if kind.repeated:
        begin = np.where(has, at, absent.at)
        again = has
        while count := np.count_nonzero(again):
            _, _, end = _value(data, at + 1, kind.wire)
            if count == at.size:
                at[:] = end
            else:
                np.copyto(at, end, where=again)
            again = data[at] == kind.tag
        return Field(has, begin, np.where(has, at - begin, 0), absent.value)
    begin, value, end = _value(data, at + 1, kind.wire)
    if count == at.size:
        at[:] = end
        return Field(has, begin, end - begin, value)
    np.copyto(at, end, where=has)
    size, value = np.where(has, end - begin, 0), np.where(has, value, absent.value)
    return Field(has, np.where(has, begin, absent.at), size, value)


def _value(data: Octets, at: Counts, wire: int) -> tuple[Counts, NDArray[np.uint64], Counts]:
    """Where the values that stand there begin, the number that each is or begins with, and where they end."""
    first = data[at]
    if wire == FIXED64:
        return at, first.astype(np.uint64), at + 8
    value, behind = first.astype(np.uint64), at + 1
    more = np.flatnonzero(first >= MORE)
    if not more.size:
        return (at, value, behind) if wire == VARINT else (behind, value, np.minimum(behind + first, _pad(data)))
    value &= np.uint64(MORE - 1)
    for place in range(1, _VARINT_BYTES):
        if more.size == 0:
            break
        octet = data[at[more] + place]
        value[more] |= (octet & (MORE - 1)).astype(np.uint64) << np.uint64(7 * place)
        behind[more] += 1
        more = more[octet >= MORE]
    if wire == VARINT:
        return at, value, behind
    return behind, value, np.minimum(behind + np.minimum(value, np.uint64(data.size)).astype(np.int64), _pad(data))


def _pad(data: Octets) -> int:
    """Where the pad begins."""
    return data.size - len(_PAD)
