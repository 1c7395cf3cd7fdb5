"""The body that a load sends."""

import json
from random import Random

from capacity.prompt import chat_body
from capacity.schedule import Arrival


def test_a_body_asks_for_a_stream_with_usage_of_just_so_many_tokens() -> None:
    body = json.loads(chat_body(Arrival(0.0, "m", 12, 34), Random(1)))
    assert body["model"] == "m"
    assert body["max_tokens"] == 34
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert len(body["messages"][0]["content"].split()) == 12


def test_no_two_prompts_of_a_load_are_the_same() -> None:
    chance = Random(1)
    bodies = {chat_body(Arrival(0.0, "m", 12, 34), chance) for _ in range(200)}
    assert len(bodies) == 200
