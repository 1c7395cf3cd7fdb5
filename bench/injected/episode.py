"""One incident on a stack, from quiet to quiet: what the collector told first, and which cause it gave.

The cause that counts is that of the alert which fired first, as it stood when it fired; of several that fired at once
the page speaks, and an objective over all its models. Nobody waits for a second look.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firsttoken.http_json import ask_json
from injected.asking import asking
from injected.incidents import NO_FAULT, Incident, Users
from injected.stack import SHORT_S, Stack
from slo.signals import SIGNALS

QUIET_S = SHORT_S + 2
"""How long nothing goes wrong before each incident."""
FIRE_LIMIT_S = 45.0
REST_LIMIT_S = 90.0
LOOK_S = 0.3
TRIES = 3
SOONEST_S = 1.0
"""After which a fault can show in an alert at all: moments of alerts are whole ticks."""
BURNS = frozenset(signal.alert for signal in SIGNALS.values())


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an incident: the alert that fired first, after how long, its cause, and those of all that fired
    with it; `said` is '' when none fired. `tries`: how often it was played until nothing disturbed it."""

    incident: str
    kind: str
    right: str
    background: float
    tries: int
    said: str
    confidence: float = 0.0
    alert: str = ""
    after_s: float = 0.0
    text: str = ""
    at_s: int = 0
    before_s: int = 0
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_right(self) -> bool:
        return self.said == self.right


async def episode(stack: Stack, incident: Incident) -> Outcome:
    """Play one incident, and leave the stack as it was. Where an alert pended before anything was done, or fired sooner
    than what was done can show, the machine was too busy for its users: it is played again, `TRIES` times at most."""
    is_disturbed, tries = True, 0
    while is_disturbed and tries < TRIES:
        is_disturbed, told, began_s = await _played(stack, incident)
        tries += 1
    return _outcome(incident, told, began_s=began_s, tries=tries)


async def _played(stack: Stack, incident: Incident) -> tuple[bool, Sequence[dict[str, Any]], float]:
    """Whether it was disturbed, the alerts that told of it first, and when it began."""
    async with asking(stack.proxy_url, Users(), seed=incident.seed, seconds=REST_LIMIT_S):
        await _rested(stack)
    async with asking(stack.proxy_url, Users(), seed=incident.seed + 1, seconds=QUIET_S):
        await asyncio.sleep(QUIET_S)
        is_disturbed = bool(await _alerts(stack))
        # Whoever asked before is still being answered.
        async with asking(stack.proxy_url, incident.users, seed=incident.seed + 2, seconds=FIRE_LIMIT_S):
            began_s = time.time()
            await _set(stack, incident)
            told = await _first(stack)
    await _reset(stack)
    return is_disturbed or any(one["fired_s"] < began_s + SOONEST_S for one in told), told, began_s


async def _set(stack: Stack, incident: Incident) -> None:
    if incident.trouble.is_away:
        await stack.way.cut()
    if incident.trouble.fault:
        await _fault(stack, incident.trouble.fault)


async def _reset(stack: Stack) -> None:
    await stack.way.cut()
    await stack.way.join()
    await _fault(stack, NO_FAULT)


async def _fault(stack: Stack, fault: Mapping[str, object]) -> None:
    await asyncio.to_thread(ask_json, f"{stack.server_url}/admin/faults", body=fault)


async def _alerts(stack: Stack) -> list[dict[str, Any]]:
    answer: Any = await asyncio.to_thread(ask_json, f"{stack.collector_url}/api/v1/alerts?limit=1")
    return [one for one in answer["alerts"] if one["name"] in BURNS]


async def _first(stack: Stack) -> Sequence[dict[str, Any]]:
    """The alerts that fire when the first of them do, and have a cause; none when that takes too long."""
    for _ in range(round(FIRE_LIMIT_S / LOOK_S)):
        firing = [one for one in await _alerts(stack) if one["state"] == "firing"]
        if any(one["cause"] for one in firing):
            return sorted(firing, key=lambda one: (not one["cause"], one["fired_s"], one["model"] != "*", one["name"]))
        await asyncio.sleep(LOOK_S)
    return ()


async def _rested(stack: Stack) -> None:
    """Wait until no alert is left. Raises `TimeoutError`."""
    for _ in range(round(REST_LIMIT_S / LOOK_S)):
        if not await _alerts(stack):
            return
        await asyncio.sleep(LOOK_S)
    raise TimeoutError(f"alerts outlived the trouble by more than {REST_LIMIT_S:g} s")


def _outcome(incident: Incident, alerts: Sequence[dict[str, Any]], *, began_s: float, tries: int) -> Outcome:
    of = incident.name, incident.kind.name, incident.kind.right, incident.background, tries
    if not alerts:
        return Outcome(*of, said="")
    first, cause = alerts[0], alerts[0]["cause"] or {"kind": "unknown", "confidence": 0.0, "at_s": 0, "before_s": 0}
    return Outcome(
        *of,
        said=cause["kind"],
        confidence=cause["confidence"],
        alert=first["name"],
        after_s=round(first["fired_s"] - began_s, 1),
        text=first["annotations"].get("cause", ""),
        at_s=cause["at_s"],
        before_s=cause["before_s"],
        others={f"{one['name']} {one['model']}": (one["cause"] or {}).get("kind", "") for one in alerts[1:]},
    )
