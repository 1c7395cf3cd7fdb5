"""Protocol buffers by hand: the few ways a field is written, and nothing more.

The exporter writes one span per request beside a live proxy, where a general encoder costs ten times as much. Field
numbers stand where messages are built (`otlp_spans`, `otlp_metrics`); the tests read every message back with the
official classes. Reference: the encoding guide of protobuf.dev.
"""

import functools
import struct
from collections.abc import Callable, Iterable, Sequence

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_QUAD = struct.Struct("<Q")
_SIGNED = struct.Struct("<q")
_DOUBLE = struct.Struct("<d")


_SHORT = tuple(bytes((value,)) for value in range(0x80))


def varint(value: int) -> bytes:
    """Base-128, least significant group first; `value` is not negative."""
    if value < 0x80:
        return _SHORT[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@functools.cache
def _tag(field: int, kind: int) -> bytes:
    """What stands before a field; there are a few dozen of them."""
    return varint(field << 3 | kind)


def zigzag(value: int) -> int:
    """The unsigned form of a `sint32`."""
    return (value << 1) ^ (value >> 31)


def integer(field: int, value: int) -> bytes:
    """int, uint, bool and enum; `value` is not negative."""
    return _tag(field, _VARINT) + varint(value)


def block(field: int, data: bytes) -> bytes:
    """bytes, and a message within a message."""
    return _tag(field, _BYTES) + varint(len(data)) + data


def text(field: int, value: str) -> bytes:
    """A string; what UTF-8 cannot hold is replaced, since one bad name must not spoil a whole batch."""
    return block(field, value.encode("utf-8", "replace"))


def fixed64(field: int, value: int) -> bytes:
    return _tag(field, _FIXED64) + _QUAD.pack(value)


def sfixed64(field: int, value: int) -> bytes:
    return _tag(field, _FIXED64) + _SIGNED.pack(value)


def double(field: int, value: float) -> bytes:
    return _tag(field, _FIXED64) + _DOUBLE.pack(value)


def packed(field: int, values: Iterable[int]) -> bytes:
    """repeated uint64, packed."""
    return block(field, b"".join(map(varint, values)))


def packed_fixed64(field: int, values: Sequence[int]) -> bytes:
    """repeated fixed64, packed."""
    return block(field, struct.pack(f"<{len(values)}Q", *values))


def packed_doubles(field: int, values: Sequence[float]) -> bytes:
    """repeated double, packed."""
    return block(field, struct.pack(f"<{len(values)}d", *values))


Value = str | bool | int | float | tuple[str, ...]


def attribute(field: int, key: str, value: Value) -> bytes:
    """A `KeyValue` of opentelemetry.proto.common.v1."""
    data, known = _any_value(value), _key(key)
    if len(known) + len(data) < 0x7E:  # the usual case, in which every length is one byte
        return b"%b%b%b\x12%b%b" % (
            _tag(field, _BYTES),
            _SHORT[len(known) + len(data) + 2],
            known,
            _SHORT[len(data)],
            data,
        )
    return block(field, known + block(2, data))


def integer_attribute(field: int, key: str) -> Callable[[int], bytes]:
    """What writes the `KeyValue` of one key for any integer that is not negative, as `attribute` does but faster."""
    # All that stands before a varint of so many bytes, of which an int64 that is not negative takes nine at most.
    before = [b""] + [attribute(field, key, 1 << 7 * size)[: -size - 1] for size in range(9)]

    def write(value: int) -> bytes:
        data = varint(value)
        return before[len(data)] + data

    return write


def before_double(field: int, key: str) -> bytes:
    """All that stands before the eight bytes of a double in the `KeyValue` of one key."""
    return attribute(field, key, 0.0)[:-8]


@functools.lru_cache(maxsize=512)
def _key(key: str) -> bytes:
    return text(1, key)


def _any_value(value: Value) -> bytes:
    if isinstance(value, str):
        return text(1, value)
    if isinstance(value, bool):
        return integer(2, int(value))
    if isinstance(value, int):
        return integer(3, value & 0xFFFF_FFFF_FFFF_FFFF)
    if isinstance(value, float):
        return double(4, value)
    return block(5, b"".join(block(1, text(1, item)) for item in value))


def resource(attributes: Iterable[tuple[str, Value]]) -> bytes:
    """A `Resource` of opentelemetry.proto.resource.v1, as a message."""
    return b"".join(attribute(1, key, value) for key, value in attributes)


def scope(name: str, version: str) -> bytes:
    """An `InstrumentationScope`, as a message."""
    return text(1, name) + text(2, version)


def request(resource_bytes: bytes, scope_bytes: bytes, items: bytes) -> bytes:
    """An export request of one resource and one scope.

    Traces and metrics number these three levels alike: request.1 is per resource, whose 1 is the resource and 2 is
    per scope, whose 1 is the scope and 2 repeats the items.
    """
    return block(1, block(1, resource_bytes) + block(2, block(1, scope_bytes) + items))
