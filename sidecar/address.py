"""Where to listen, and where a server is reached: a host and a port, or a unix socket.

A unix socket is written as nginx and most servers write it, `unix:/run/vllm.sock`. Only a process of this machine that
the file system lets at the socket can reach it, so it counts as loopback does.
"""

import ipaddress
from dataclasses import dataclass

UNIX = "unix:"
MAX_UNIX_BYTES = 107  # of `sun_path` (unix(7)), less the NUL that ends it


@dataclass(frozen=True, slots=True)
class HostPort:
    """An address of TCP."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class UnixPath:
    """A unix socket in the file system."""

    path: str

    def __str__(self) -> str:
        return UNIX + self.path


Address = HostPort | UnixPath


def parse(value: str) -> Address:
    """`HOST:PORT`, an IPv6 host in brackets, or `unix:/PATH`; ValueError says what would be right."""
    if value.startswith(UNIX):
        return unix_path(value.removeprefix(UNIX))
    host, colon, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port[:6]) > 65535:
        raise ValueError("write HOST:PORT, as 127.0.0.1:8001, or unix:/PATH")
    return HostPort(host, int(port))


def unix_path(path: str) -> UnixPath:
    """The socket at an absolute path that fits into an address; ValueError says what would be right."""
    if not path.startswith("/") or path.endswith("/") or "\0" in path:
        raise ValueError("write unix:/PATH, an absolute path, as unix:/run/engine.sock")
    if len(path.encode(errors="surrogateescape")) > MAX_UNIX_BYTES:
        raise ValueError(f"the path of a unix socket has at most {MAX_UNIX_BYTES} bytes: choose a shorter one")
    return UnixPath(path)


def of_socket(name: object) -> Address:
    """The address that a socket tells of itself (`getsockname`): a pair, or longer for IPv6; a path for a unix one."""
    if isinstance(name, tuple):
        return HostPort(str(name[0]), int(name[1]))
    return UnixPath(str(name))


def is_loopback(host: str) -> bool:
    """Whether an address, as written or as a socket names it, can only be this machine's own. A name is not resolved:
    of names `localhost` alone is trusted."""
    if host == "localhost":
        return True
    try:
        found = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found.is_loopback if mapped is None else mapped.is_loopback


def is_local(address: Address) -> bool:
    """Whether none but this machine can reach it."""
    return isinstance(address, UnixPath) or is_loopback(address.host)
