"""A what-if as JSON: what its model describes, whatever is known."""

from collector.answering import answers
from collector.answering.whatif_json import whatif_json
from collector.replaying.whatif import answered
from tests.collector.replaying.test_whatif import ASKED, asked, read


def test_every_answer_is_as_its_model_describes_it() -> None:
    spec = asked(percentile="50", threshold="400ms")
    for lacking in ((), (ASKED,), (ASKED, "ttft")):
        told = whatif_json(answered(spec, read(spec, unsure=1, lacking=lacking)))
        assert answers.WhatIf.model_validate(told).model_dump() == told


def test_a_tier_that_cannot_fire_says_so() -> None:
    spec = asked(percentile="95")
    found = whatif_json(answered(spec, read(spec)))["asked"]
    assert (found["target"], found["threshold"], found["total"]) == (0.95, 0.5, 864_000)
    assert {one["name"]: one["can_fire"] for one in found["tiers"]}["fast"] is True
