"""What another promise would have cost: exact by counts, between bounds by histograms, and never a guess."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from collector.errors import RefusedError
from collector.replaying.replay_past import Read, Untold
from collector.replaying.whatif import ASKED, Bounded, answered, question
from slo.fields import NAME
from slo.objective import Objective, Spec, parse
from tests.collector.replaying.test_replay import Event, past
from tests.collector.scene import NOW_S, TICK_S

SPEC = parse(
    "service: chat\n"
    "objectives:\n"
    "  - {name: ttft, signal: ttft, percentile: 99, threshold: 500ms, window: 1d}\n"
    "  - {name: answered, signal: availability, target: 99.9%}\n"
    "  - {name: kv, signal: kv_occupancy, threshold: 90%, target: 99%}\n"
)[0]
TTFT, ANSWERED, KV = SPEC.objectives
DAY_S = 86400
EVENTS: list[Event] = [(at_s, 98, 2) for at_s in range(NOW_S - DAY_S, NOW_S, TICK_S)]


def asked(objective: Objective = TTFT, *, percentile: str = "", threshold: str = "", environment: str = "") -> Spec:
    return question(SPEC, objective, percentile=percentile, threshold=threshold, environment=environment)


def read(spec: Spec, *, unsure: int = 0, lacking: tuple[str, ...] = ()) -> Read:
    """The same events for each of the two promises; some of those of what was asked may be either."""
    pasts = []
    for one in spec.objectives:
        found = replace(past(EVENTS), objective=one)
        open_ = np.full(len(EVENTS), unsure if one.name == ASKED else 0)
        pasts.append(replace(found, steps=replace(found.steps, unsure=open_)))
    untold = [Untold("chat", name, "nobody wrote it down") for name in lacking]
    return Read(NOW_S - DAY_S, NOW_S, [one for one in pasts if one.objective.name not in lacking], untold, ())


def test_another_percentile_is_judged_by_the_same_events() -> None:
    spec = asked(percentile="95")
    found = answered(spec, read(spec))
    assert (found.from_s, found.to_s, found.why) == (NOW_S - DAY_S, NOW_S, "")
    assert found.promised is not None
    assert found.asked is not None
    assert found.promised.bad_share == found.asked.bad_share == Bounded(0.02, 0.02, 0.02)
    # Two in a hundred are twice what 99 % allows, and two fifths of what 95 % does.
    assert found.promised.remaining.likely == pytest.approx(-1, abs=0.01)
    assert found.asked.remaining.likely == pytest.approx(0.6, abs=0.01)
    assert found.asked.remaining.is_exact
    assert found.asked.objective.hash == TTFT.hash, "another target starts no new series"


def test_what_histograms_leave_open_has_bounds() -> None:
    spec = asked(percentile="95", threshold="400ms")
    found = answered(spec, read(spec, unsure=1)).asked
    assert found is not None
    share = found.bad_share
    assert share is not None
    assert (share.least, share.likely, share.most) == (0.01, 0.02, 0.03)
    assert found.lowest.least < found.lowest.likely < found.lowest.most
    assert found.remaining.least < found.remaining.likely < found.remaining.most
    assert found.remaining.least == pytest.approx(0.4, abs=0.01)


def test_what_is_in_no_histogram_may_be_bad_too() -> None:
    """Requests that still wait were counted at their deadline, and have no value yet."""
    spec = asked(percentile="95", threshold="400ms")
    whole = read(spec)
    waiting = [
        replace(one, basis="histogram", steps=past(EVENTS[:-432]).steps) if one.objective.name == ASKED else one
        for one in whole.pasts
    ]
    found = answered(spec, replace(whole, pasts=waiting)).asked
    assert found is not None
    assert found.missing == 43_200
    assert found.bad.most == found.bad.likely + 43_200
    assert found.bad_share is not None
    assert found.bad_share.most == pytest.approx(0.02 * 0.95 + 0.05)
    assert found.remaining.least < found.remaining.likely == found.remaining.most
    assert found.remaining.least == pytest.approx(1 - 0.069 / 0.05, abs=0.01)
    assert found.lowest.least <= found.remaining.least, "it was that low at the end, if they are bad"


def test_what_no_histogram_holds_anything_of_is_unknown_and_not_bad() -> None:
    spec = asked(percentile="95", threshold="400ms")
    whole = read(spec)
    long_ago = past([(NOW_S - 3 * DAY_S, 9, 0)]).steps
    waiting = [
        replace(one, basis="histogram", steps=long_ago) if one.objective.name == ASKED else one for one in whole.pasts
    ]
    found = answered(spec, replace(whole, pasts=waiting))
    assert found.asked is None
    assert found.why == "864000 events were counted, and no histogram holds any of them"


def test_alerts_are_replayed_with_bounds_too() -> None:
    spec = asked(percentile="99.9")
    found = answered(spec, read(spec)).asked
    assert found is not None
    fast = next(one for one in found.tiers if one.tier.name == "fast")
    assert fast.times == Bounded(1, 1, 1)
    assert fast.firing_s.is_exact
    assert fast.firing_s.likely > 0
    lenient = answered(asked(percentile="90"), read(asked(percentile="90"))).asked
    assert lenient is not None
    assert all(one.times.likely == 0 for one in lenient.tiers)


def test_what_nothing_stored_can_tell_is_said_with_its_reason() -> None:
    spec = asked(threshold="300ms")
    found = answered(spec, read(spec, lacking=(ASKED,)))
    assert found.asked is None
    assert found.promised is not None
    assert found.why == "nobody wrote it down"
    nothing = answered(spec, Read(0, 0, (), (), ()))
    assert (nothing.promised, nothing.asked, nothing.why) == (None, None, "nothing is stored yet")


def test_only_the_objectives_own_period_counts() -> None:
    spec = asked(percentile="95")
    long_ago = [*[(NOW_S - 3 * DAY_S + at, 0, 5) for at in range(0, 600, TICK_S)], *EVENTS]
    whole = read(spec)
    pasts = [replace(one, steps=past(long_ago).steps) for one in whole.pasts]
    found = answered(spec, replace(whole, from_s=NOW_S - 3 * DAY_S, pasts=pasts))
    assert found.from_s == NOW_S - DAY_S
    assert found.asked is not None
    assert found.asked.total == 100 * len(EVENTS)


def heard_in_two(spec: Spec) -> Read:
    """What was asked is known of `eu` for a day, of `us` for a step; what is promised of `us` alone."""
    whole = read(spec)
    eu = [replace(one, environment="eu") for one in whole.pasts if one.objective.name == ASKED]
    us = [replace(one, environment="us", steps=past(EVENTS[-1:]).steps) for one in whole.pasts]
    return replace(whole, pasts=[*eu, *us])


def test_one_environment_is_asked_about_and_no_other_is_mixed_in() -> None:
    spec = asked(percentile="95")
    whole = heard_in_two(spec)
    for pasts in (whole.pasts, whole.pasts[::-1]):
        both = replace(whole, pasts=pasts)
        eu, us = (answered(spec, both, environment=name) for name in ("eu", "us"))
        assert eu.promised is None, "the promise as it stands in another environment is no answer"
        assert eu.asked is not None
        assert eu.asked.total == 100 * len(EVENTS)
        assert us.promised is not None
        assert us.asked is not None
        assert us.promised.total == us.asked.total == 100
    nowhere = answered(spec, whole, environment="")
    assert (nowhere.promised, nowhere.asked) == (None, None)
    assert nowhere.why == "nothing that could tell is stored of this environment"


def test_of_several_environments_one_must_be_named() -> None:
    spec = asked(percentile="95")
    with pytest.raises(RefusedError) as refused:
        answered(spec, heard_in_two(spec))
    assert str(refused.value) == "environment: chat is heard from eu, us: name one"
    own = spec.model_copy(update={"environment": "us"})
    found = answered(own, heard_in_two(own)).asked
    assert found is not None
    assert found.total == 100


def test_only_the_environment_asked_about_is_read() -> None:
    assert asked(environment="eu").environment == "eu"
    own = SPEC.model_copy(update={"environment": "us"})
    assert question(own, TTFT, percentile="95", threshold="", environment="eu").environment == "us"


def test_an_objective_of_any_name_can_be_asked_about() -> None:
    named = parse("service: chat\nobjectives: [{name: what-if, signal: ttft, percentile: 99, threshold: 500ms}]")[0]
    spec = question(named, named.objectives[0], percentile="95", threshold="")
    found = answered(spec, read(spec))
    assert found.promised is not None
    assert found.asked is not None
    assert (str(found.promised.objective.goal), str(found.asked.objective.goal)) == ("0.99", "0.95")
    assert NAME.fullmatch(ASKED) is None, "no spec may name an objective so"


def test_the_question_holds_both_promises() -> None:
    promised, other = asked(ANSWERED, percentile="99").objectives
    assert promised is ANSWERED
    assert (other.name, str(other.goal), other.threshold) == (ASKED, "0.99", None)
    assert asked(KV, threshold="80%").objectives[1].threshold is not None


REFUSED: dict[str, tuple[Objective, dict[str, Any], str]] = {
    "no percentile": (TTFT, {"percentile": "many"}, "percentile: many is not a share"),
    "all of them": (TTFT, {"percentile": "100"}, "percentile: 100 leaves nothing to miss"),
    "none of them": (TTFT, {"percentile": "0"}, "percentile: 0 leaves nothing to miss"),
    "a bare fraction": (TTFT, {"percentile": "0.95"}, "percentile: 0.95 may be a fraction"),
    "no duration": (TTFT, {"threshold": "soon"}, "threshold: soon is not a duration"),
    "of one that has none": (ANSWERED, {"threshold": "1s"}, "threshold: availability has none"),
    "more than all of it": (KV, {"threshold": "120%"}, "threshold: 120% is no share"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_asked_is_refused_in_one_line(case: str) -> None:
    objective, figures, line = REFUSED[case]
    with pytest.raises(RefusedError) as refused:
        asked(objective, **figures)
    assert str(refused.value).startswith(line)
