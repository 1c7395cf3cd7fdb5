"""What is said of an Alertmanager."""

import pytest

from alerts.routes import Routing, alertmanager
from firsttoken.doctor.facts import Facts
from firsttoken.json_fields import object_at, objects_at
from tests.firsttoken.doctor.healthy import NOW_S, SPEC, Plant, Planted, healthy, of_code, prometheus, receiving, wrong

WEBHOOK = {"name": "team", "webhook_configs": [{"url": "http://hook/"}]}


def config(**parts: object) -> Plant:
    """With this in the place of what the routes of ours would be."""

    def plant(facts: Facts) -> Facts:
        return receiving(facts, config={**alertmanager((SPEC,), Routing()), **parts})

    return plant


def only(child: dict[str, object]) -> Plant:
    return config(route={"receiver": "null", "routes": [child]}, receivers=[{"name": "null"}, WEBHOOK])


PLANTED: Planted = {
    "somebody else's configuration": (
        "page-reaches-nobody",
        config(route={"receiver": "null"}, receivers=[{"name": "null"}]),
    ),
    "tickets that go to a receiver without a way to tell": (
        "ticket-reaches-nobody",
        only({"receiver": "team", "matchers": ['notify="page"']}),
    ),
    "pages grouped by alert": ("page-grouping", only({"receiver": "team", "group_by": ["alertname", "service_name"]})),
    "no inhibition": ("inhibition-absent", config(inhibit_rules=[])),
    "an Alertmanager that alerts never reach": ("alerts-not-arriving", lambda f: receiving(f, alerts=frozenset())),
    "a watchdog that nobody misses": ("watchdog-unheard", lambda f: f),
    "a configuration that is not shown": ("routes-unread", lambda f: receiving(f, config=None)),
    "another Alertmanager than Prometheus tells": ("another-alertmanager", lambda f: receiving(f, url="http://b:9093")),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert of_code(plant(healthy()), code)


def test_routes_of_ours_within_those_of_others_are_fine() -> None:
    mine = alertmanager((SPEC,), Routing())
    root = {"receiver": "team", "group_by": ["alertname"], "routes": [*objects_at(object_at(mine, "route"), "routes")]}
    facts = config(route=root, receivers=[WEBHOOK, *objects_at(mine, "receivers")])(healthy())
    assert wrong(facts) == set()


def test_what_has_just_begun_may_not_have_arrived_yet() -> None:
    empty = receiving(healthy(), alerts=frozenset())
    assert "alerts-not-arriving" in wrong(empty)
    assert wrong(prometheus(empty, loaded_s=NOW_S - 60)) == set()
    assert wrong(receiving(empty, since_s=NOW_S - 60)) == set()
    assert wrong(receiving(empty, since_s=None)) == set()


def test_a_receiver_that_nobody_described_tells_nobody() -> None:
    assert "page-reaches-nobody" in wrong(only({"receiver": "gone"})(healthy()))
