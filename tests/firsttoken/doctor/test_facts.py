"""All places in a row, whatever they are."""

from dataclasses import replace

from firsttoken.doctor.facts import SidecarFacts
from tests.firsttoken.doctor.healthy import (
    ALERTMANAGER_URL,
    COLLECTOR_URL,
    PROMETHEUS_URL,
    SERVER_URL,
    SIDECAR_URL,
    healthy,
)


def test_every_place_is_there_with_its_trouble() -> None:
    facts = replace(healthy(), sidecars=(*healthy().sidecars, SidecarFacts("http://gone", "does not answer")))
    assert list(facts.places) == [
        ("server", SERVER_URL, ""),
        ("sidecar", SIDECAR_URL, ""),
        ("sidecar", "http://gone", "does not answer"),
        ("collector", COLLECTOR_URL, ""),
        ("prometheus", PROMETHEUS_URL, ""),
        ("alertmanager", ALERTMANAGER_URL, ""),
    ]


def test_only_those_that_answer_have_a_page() -> None:
    facts = replace(healthy(), sidecars=(SidecarFacts("http://gone", "does not answer"),))
    assert [(kind, url) for kind, url, _ in facts.pages] == [("collector", COLLECTOR_URL)]


def test_groups_of_others_are_not_ours() -> None:
    (prometheus,) = healthy().prometheuses
    group = replace(prometheus.groups[0], name="kubernetes-apps")
    assert group not in replace(prometheus, groups=(*prometheus.groups, group)).own_groups
    assert len(prometheus.own_groups) == len(prometheus.groups)
