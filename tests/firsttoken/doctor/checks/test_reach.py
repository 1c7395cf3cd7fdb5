"""Who does not answer, and who is not ready."""

import pytest

from firsttoken.doctor.facts import Facts
from tests.firsttoken.doctor.healthy import Plant, Planted, collector, healthy, of_code, receiving, server, sidecar

PLANTED: Planted = {
    "a server that is down": ("unreachable", lambda f: server(f, error="does not answer: connection refused")),
    "a sidecar that asks for a token": ("unreachable", lambda f: sidecar(f, error="answers 401: the admin token")),
    "an Alertmanager behind a wrong path": ("unreachable", lambda f: receiving(f, error="answers 404: not found")),
    "a sidecar whose server is away": ("not-ready", lambda f: sidecar(f, unready="connect_refused")),
    "a collector that reads its past": ("not-ready", lambda f: collector(f, unready="reading the past")),
}


@pytest.mark.parametrize(("code", "plant"), PLANTED.values(), ids=PLANTED.keys())
def test_each_is_found_with_its_reason(code: str, plant: Plant) -> None:
    facts = plant(healthy())
    (finding,) = of_code(facts, code)
    reasons = [reason for _, _, reason in facts.places if reason] + unready(facts)
    assert reasons[0] in finding.what
    assert finding.is_wrong


def unready(facts: Facts) -> list[str]:
    return [one.unready for one in (*facts.sidecars, *facts.collectors) if one.unready]
