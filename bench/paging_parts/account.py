"""What a pager makes of its messages: incidents opened and closed, as PagerDuty and Opsgenie keep them by group. Pure.

A message that a group fires opens an incident, and rings, unless one is open: then it joins that one. A message that
the group has resolved closes it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from firsttoken.pager import Notification


@dataclass(frozen=True, slots=True)
class Account:
    """Moments of what was opened and closed (epoch seconds), how many messages only joined, and what they named."""

    opened: tuple[float, ...] = ()
    closed: tuple[float, ...] = ()
    joined: int = 0
    names: tuple[str, ...] = ()


def account(messages: Iterable[Notification], kind: str) -> Account:
    """The messages of one kind (page or ticket), in the order in which they came."""
    opened: list[float] = []
    closed: list[float] = []
    joined, now_open = 0, set[str]()
    names: dict[str, None] = {}
    for message in messages:
        if message.kind != kind:
            continue
        names |= dict.fromkeys(message.names)
        if message.status == "resolved":
            closed.append(message.at_s)
            now_open.discard(message.group)
        elif message.group in now_open:
            joined += 1
        else:
            opened.append(message.at_s)
            now_open.add(message.group)
    return Account(tuple(opened), tuple(closed), joined, tuple(names))
