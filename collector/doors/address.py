"""Where a listener of ours is: a host and a port, read from a flag."""

import ipaddress
from dataclasses import dataclass

from collector.errors import UsageError

MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen; port 0 is any free one. One that `is_usual`, that nobody named, may be done without."""

    host: str
    port: int
    is_usual: bool = False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether this machine alone can reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def address(flag: str, text: str, *, or_off: str = "") -> Address:
    """The address that `HOST:PORT` or `[IPV6]:PORT` names. Raises `UsageError`, which names the flag."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port[:6]) > MAX_PORT:
        raise UsageError(f"{flag} {text}: write HOST:PORT, as 127.0.0.1:4318{or_off}")
    return Address(host.removeprefix("[").removesuffix("]"), int(port))
