"""What is said of a sidecar."""

from dataclasses import replace

import pytest

from firsttoken.doctor.facts import Facts
from tests.firsttoken.doctor.healthy import (
    COLLECTOR_TEXT,
    NAMES,
    SPEC,
    Plant,
    Planted,
    collector,
    healthy,
    of_code,
    page,
    sidecar,
    sidecar_text,
    wrong,
)


def without(text: str, word: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if word not in line)


def only(facts: Facts, names: tuple[str, ...], *, scrapes: bool = False) -> Facts:
    text = sidecar_text(names)
    return sidecar(facts, page=page(without(text, "in_flight") if scrapes else text))


PLANTED: Planted = {
    "a sidecar without a spec": ("no-spec", lambda f: sidecar(f, page=page(without(sidecar_text(), "spec_info")))),
    "a spec that could not be read again": (
        "reload-failed",
        lambda f: sidecar(
            f, page=page(sidecar_text().replace('successful{model_name="",service_name="chat"} 1', "successful 0"))
        ),
    ),
    "a collector with a broken spec": (
        "reload-failed",
        lambda f: collector(f, page=page(COLLECTOR_TEXT.replace("successful 1.0", "successful 0.0"))),
    ),
    "an engine that does not tell its KV cache": ("sli-unbacked", lambda f: only(f, NAMES[:3])),
    "an objective that matches no model": ("sli-unbacked", lambda f: only(f, NAMES[1:])),
    "a sidecar that only scrapes, and availability": (
        "sli-unbacked",
        lambda f: replace(only(f, NAMES[:1], scrapes=True), servers=()),
    ),
    "a sidecar that scrapes beside one that requests pass by": (
        "double-counting",
        lambda f: replace(
            f, sidecars=(*f.sidecars, replace(only(f, NAMES[:1], scrapes=True).sidecars[0], url="http://b"))
        ),
    ),
    "an endpoint that is another collector's": (
        "telemetry-lost",
        lambda f: collector(f, page=page(without(COLLECTOR_TEXT, 'service_name="chat",') + "")),
    ),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found(code: str, plant: Plant) -> None:
    assert [one for one in of_code(plant(healthy()), code) if one.is_wrong]


def test_an_objective_that_any_sidecar_of_the_service_counts_is_counted() -> None:
    facts = only(healthy(), NAMES[1:])
    other = replace(healthy().sidecars[0], url="http://other:9464", page=page(sidecar_text(NAMES[:1])))
    assert wrong(replace(facts, sidecars=(*facts.sidecars, other))) == set()


def test_what_a_scrape_lacks_is_told_once_of_the_server_where_that_was_read() -> None:
    facts = only(healthy(), NAMES[:1], scrapes=True)
    where = {finding.where for finding in of_code(facts, "sli-unbacked")}
    assert where == {f"server {facts.servers[0].url}"}


def test_who_has_seen_no_request_yet_may_count_nothing() -> None:
    text = sidecar_text(("kv-headroom",)).replace(
        'outcome="ok",service_name="chat"} 100', 'outcome="ok",service_name="chat"} 0'
    )
    assert wrong(sidecar(healthy(), page=page(text))) == set()


def test_a_young_sidecar_may_be_unheard() -> None:
    facts = collector(healthy(), page=page("firsttoken_collector_ticks_total 1\nfirsttoken_collector_lag_seconds 1\n"))
    facts = replace(facts, specs=())
    assert "telemetry-lost" in wrong(facts)
    young = sidecar_text().replace('heartbeat_total{model_name="",service_name="chat"} 600', "heartbeat_total 9")
    assert "telemetry-lost" not in wrong(sidecar(facts, page=page(young)))


def test_a_service_without_objectives_is_heard_when_the_collector_says_so() -> None:
    facts = collector(healthy(), page=page("firsttoken_collector_ticks_total 1\n"), unjudged=(SPEC.service,))
    assert "telemetry-lost" not in wrong(facts)
