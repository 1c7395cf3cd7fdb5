"""From promises to slo.yaml: checked by our own rules, told apart by name, written so that it can be read."""

from decimal import Decimal

import pytest

from slo.objective import parse
from slo.openslo.carrying import checked, named, objective_fields, slo_yaml, specs, told
from slo.openslo.promise import Found, LeftBehind, Measure, Promise

TTFT = Measure("ttft", "500ms", model="llama")


def fields(name: str = "a", measure: Measure = TTFT, target: str = "0.95", **labels: str) -> dict[str, object]:
    return objective_fields(name, measure, target=Decimal(target), window="28d", labels=labels)


def test_a_latency_has_a_percentile_and_a_state_a_target() -> None:
    assert fields() == {
        "name": "a",
        "signal": "ttft",
        "percentile": "95%",
        "threshold": "500ms",
        "window": "28d",
        "match": {"model": "llama"},
    }
    assert fields(measure=Measure("availability"), target="0.999")["target"] == "99.9%"
    assert fields(measure=Measure("ttft", "1s", percentile=Decimal("0.9")))["percentile"] == "90%"


def test_owners_are_owners_and_labels_that_alerts_have_already_are_none() -> None:
    others = {"cost-centre": "7", "burn_tier": "fast", "service": "chat", "größe": "xl"}
    found = fields(team="llm", tier="gold", severity="critical", **others)
    assert found["owner"] == "llm"
    assert found["labels"] == {"tier": "gold"}
    assert "labels" not in fields(owner="a b")
    assert fields(owner="a b")["owner"] == "a-b"


NAMES = {
    "first-token": "first-token",
    "Foo Total/Errors": "Foo-Total-Errors",
    "--": "unnamed",
    "é": "unnamed",
    "a" * 70: "a" * 63,
}


@pytest.mark.parametrize(("foreign", "own"), NAMES.items())
def test_a_foreign_name_becomes_one_of_ours(foreign: str, own: str) -> None:
    assert named(foreign) == own


def found(*promises: Promise) -> Found:
    return checked(Found(promises, (LeftBehind("chat", "raw", "is raw"),)))


def test_what_our_rules_refuse_is_left_behind_with_their_reason() -> None:
    made = found(
        Promise("chat", "all", fields("all", target="1")),
        Promise("chat", "long", {**fields("long"), "window": "500d"}),
        Promise("chat", "fine", fields("fine")),
    )
    assert [one.name for one in made.promises] == ["fine"]
    assert [one.why for one in made.left] == [
        "is raw",
        "percentile: 100% leaves no error budget: use less, as 99.9%",
        "window: must be from 1m to 400d",
    ]


def test_two_of_one_name_are_told_apart_and_services_stand_for_themselves() -> None:
    made = found(Promise("chat", "x y", fields()), Promise("chat", "x-y", fields()), Promise("talk", "x-y", fields()))
    assert [(spec.service, one.name) for spec in specs(made) for one in spec.objectives] == [
        ("chat", "x-y"),
        ("chat", "x-y-2"),
        ("talk", "x-y"),
    ]


def test_the_text_is_a_spec_with_what_became_of_each_on_top() -> None:
    made = found(Promise("chat", "ttft", fields("ttft"), ("a note",)), Promise("talk", "b", fields("b")))
    lines = told(made, specs(made))
    assert lines == [
        "carried over: chat/ttft: 95% of requests with time to first token within 500ms, over 28d",
        "    a note",
        "carried over: talk/b: 95% of requests with time to first token within 500ms, over 28d",
        "left behind: chat/raw: is raw",
    ]
    text = slo_yaml(specs(made), ["top", *lines])
    assert text.startswith("# top\n# carried over: chat/ttft:")
    assert parse(text) == specs(made)
