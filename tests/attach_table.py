"""The table of each page of docs/attach/ that says what an engine's own metrics can back, from the sidecar's own maps.

It stands between two marks, `<!-- backed by ENGINE -->` and `<!-- end -->`; `tests.generate_docs` writes it anew.
"""

import re
from pathlib import Path

from sidecar.engine.engine_requests import TOLD
from sidecar.engine.engines import ENGINES, LLAMACPP, Candidates
from sidecar.polling.backing import Sight, lines
from slo.objective import STATE_SIGNALS
from slo.signals import SIGNALS

FOLDER = Path(__file__).parents[1] / "docs" / "attach"
BLOCK = re.compile(r"(?<=<!-- backed by )([a-z]+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)
HEAD = "| signal | a sidecar before it | reading its metrics alone |\n|---|---|---|\n"


def filled(page: str) -> str:
    """A page with every table between marks as the maps have it now."""
    return BLOCK.sub(lambda found: f"{found[1]}{found[2]}{table(found[1])}", page)


def table(engine: str) -> str:
    """Whether each signal of slo.yaml can be had of `engine` in either way, from which metric, or why not."""
    return HEAD + "".join(
        f"| `{signal}` | {before(signal, engine)} | {alone(signal, engine)} |\n" for signal in SIGNALS
    )


def before(signal: str, engine: str) -> str:
    """What a sidecar counts that requests pass through: all but the engine's state, which only its page tells."""
    if signal not in STATE_SIGNALS:
        return "yes"
    return "no" if alone(signal, engine).startswith("no: ") else "yes, from its page"


def alone(signal: str, engine: str) -> str:
    """What a sidecar counts that only reads the engine's page."""
    known = ENGINES[engine]
    if signal == "kv_occupancy":
        slots = ["`/slots`"] if known is LLAMACPP else []
        return _of_state([*slots, *_named(known.kv_occupancy)], engine)
    if signal == "queue":
        return _of_state(_named(known.waiting), engine)
    rows = [row for row in TOLD[engine].histograms if row.metric is SIGNALS[signal].metric]
    if rows:
        return "; ".join(f"`{row.names[0]}`{f', {row.needs}' if row.needs else ''}" for row in rows)
    title = SIGNALS[signal].title
    (why,) = (line for line in lines([], Sight(engine)) if line.startswith(f"{title} cannot be backed: "))
    return f"no: {why.removeprefix(f'{title} cannot be backed: ')}"


def _named(candidates: Candidates) -> list[str]:
    return list(dict.fromkeys(f"`{one.names[0]}`" for one in candidates))


def _of_state(names: list[str], engine: str) -> str:
    return ", else ".join(names) or f"no: {engine} does not tell it"
