"""The answer as JSON and in words, and what its reader is warned of."""

import json
from dataclasses import replace

import numpy as np
import pytest

from capacity.sizing.measured import Measured
from capacity.sizing.replica import replica
from capacity.sizing.result import Result
from capacity.sizing.sized import Terms, sized
from tests.capacity.sizing.test_replica import KNOWN, OBJECTIVES
from tests.capacity.sizing.test_sized import BY_HAND
from tests.capacity.sizing.traces import bursts


def answer(known: Measured = BY_HAND, **changes: object) -> Result:
    demand = replace(bursts(), **changes)
    one = replica(known, OBJECTIVES, demand, 1)
    return Result(sized(demand, known, one, Terms()), demand, known, one, Terms(), ("kv: no",))


def test_json_holds_the_answer_and_what_it_rests_on() -> None:
    said = answer()
    made = json.loads(json.dumps(said.as_json({"trace": "bursts"})))
    found = said.sized
    assert (made["verdict"], made["replicas"], made["poisson_replicas"]) == ("sized", found.replicas, found.by_poisson)
    assert (made["replay_replicas"], made["peak_replicas"]) == (found.by_replay, found.by_peak)
    assert made["needed_replicas"] == made["replicas"] - made["spare"]
    assert 0 < made["headroom"] < 1
    assert made["demand"]["requests"] == bursts().times_s.size
    assert made["replica"]["capacity"]["certified_rps"] == made["certified_rps"] == 0.5
    assert [one["replicas"] for one in made["candidates"]] == [one.replicas for one in found.candidates]
    assert (made["left_out"], made["settings"]) == (["kv: no"], {"trace": "bursts"})


def test_the_sentence_has_replay_and_poisson_side_by_side() -> None:
    said = answer()
    assert said.sentence() == (
        f"{said.sized.replicas} replicas, 1 of them spare: {said.sized.by_replay} by replay of bursts, "
        f"{said.sized.by_peak} by its peak; Poisson would have said {said.sized.by_poisson}"
    )
    none_spare = replace(said, terms=Terms(spare=0), sized=replace(said.sized, replicas=said.sized.needed))
    assert none_spare.sentence().startswith(f"{said.sized.needed} replicas: ")
    assert none_spare.said()[said.sized.needed].endswith("the answer")


WARNED = {
    "a capacity by hand": (BY_HAND, {}, "how long requests stay is guessed"),
    "no upper end": (BY_HAND, {}, "nothing says how sure the capacity is"),
    "other requests": (replace(KNOWN, mean_tokens=(100.0, 16.0)), {}, "times the work of those that the capacity"),
    "no lengths": (KNOWN, {"tokens": ()}, "does not say how long its requests are"),
    "a short demand": (KNOWN, {}, "minutes of demand say little of its peaks"),
    "replicas for bursts alone": (BY_HAND, {}, "% of what 11 replicas are certified for"),
    "a coarse demand": (KNOWN, {"note": "bursts are not recorded"}, "bursts are not recorded"),
}


@pytest.mark.parametrize(("known", "changes", "says"), WARNED.values(), ids=WARNED.keys())
def test_what_is_uncertain_is_said(known: Measured, changes: dict[str, object], says: str) -> None:
    assert says in "; ".join(answer(known, **changes).warnings())


def test_nothing_is_said_where_nothing_is_uncertain() -> None:
    demand = bursts()
    known = replace(KNOWN, mean_tokens=demand.mean_tokens)
    said = answer(known, times_s=np.linspace(0, 3600, demand.times_s.size))
    assert list(said.warnings()) == []
