"""What a replay reads out of real databases: exact counts where they are, histograms where they are not."""

import asyncio
from collections.abc import Sequence

import pytest

from collector.errors import UnusableDatabaseError
from collector.replaying import replay_past
from collector.replaying.replay import Past
from collector.replaying.replay_past import Fired, Read
from collector.storage import commit
from collector.storage.database import database_url
from collector.storage.read_only import read_only
from collector.values.alerting import Alert, AlertKey
from collector.values.deltas import Deltas
from slo import objective
from slo.objective import Spec
from slo.signals import ALL_MODELS
from slo.trouble import BUDGET_POLICY
from tests.collector import scene, stores
from tests.collector.scene import NOW_S

START_S = NOW_S - 3600
TTFT = "service: chat\nobjectives:\n  - {{name: {name}, signal: ttft, percentile: 99, threshold: {threshold}}}\n"


def spec(threshold: str = "500ms", name: str = "ttft") -> tuple[Spec, ...]:
    return objective.parse(TTFT.format(name=name, threshold=threshold))


def alert(state: str, since_s: int, tier: str = "fast", name: str = "LLMTTFTBudgetBurn") -> Alert:
    key = AlertKey(name, "", "chat", ALL_MODELS, "ttft", tier)
    return Alert(key, state, since_s, START_S, (("notify", "page"),), ())  # type: ignore[arg-type]


async def filled(database: str, deltas: Deltas, alerts: Sequence[Alert] = ()) -> None:
    async with stores.store(database) as store:
        await store.write(lambda connection: commit.write_deltas(connection, deltas, step_s=10, at_s=NOW_S))
        await store.write(lambda connection: commit.write_alerts(connection, (), alerts))


async def read_back(database: str, specs: Sequence[Spec]) -> Read:
    return await read_only(database_url(database), lambda connection: replay_past.read(connection, specs))


def read(database: str, deltas: Deltas, specs: Sequence[Spec], alerts: Sequence[Alert] = ()) -> Read:
    async def both() -> Read:
        await filled(database, deltas, alerts)
        return await read_back(database, specs)

    return asyncio.run(both())


def counts(past: Past) -> tuple[int, int, int]:
    return int(past.steps.good.sum()), int(past.steps.bad.sum()), int(past.steps.unsure.sum())


KNOWN = scene.known(START_S, START_S + 100)


def test_events_judged_by_the_same_rule_are_taken_as_they_were_counted(database: str) -> None:
    rows = (scene.slo(START_S, 90, 10), scene.slo(START_S + 10, 5, 0, model="n"))
    found = read(database, Deltas(slo=rows, known=KNOWN), spec())
    assert (found.from_s, found.to_s) == (START_S, START_S + 100)
    assert {(past.model, past.basis, counts(past)) for past in found.pasts} == {
        (ALL_MODELS, "counts", (95, 10, 0)),
        ("m", "counts", (90, 10, 0)),
        ("n", "counts", (5, 0, 0)),
    }


def test_a_changed_threshold_is_read_off_the_histograms_with_what_is_open(database: str) -> None:
    values = scene.values(START_S, [0.1] * 90 + [0.4] * 8 + [0.3] * 2)
    rows = Deltas(slo=(scene.slo(START_S, 100, 0),), latencies=(values,), known=KNOWN)
    (past,) = read(database, rows, spec("300ms")).pasts
    good, bad, unsure = counts(past)
    assert (past.model, past.basis) == (ALL_MODELS, "histogram")
    assert good + bad == 100
    assert 8 <= bad <= 10
    assert unsure == 2  # those of the one bucket that 300 ms cuts


def test_exact_counts_begin_where_the_rule_became_what_it_is(database: str) -> None:
    before, after = scene.values(START_S, [0.1] * 7 + [0.9] * 3), scene.values(START_S + 50, [0.1] * 20)
    rows = Deltas(slo=(scene.slo(START_S + 50, 18, 2),), latencies=(before, after), known=KNOWN)
    (past,) = read(database, rows, spec()).pasts
    assert past.basis == "counts+histogram"
    assert counts(past) == (25, 5, 0)


def test_a_rule_that_was_changed_and_changed_back_is_read_off_in_between(database: str) -> None:
    ours = [scene.slo(START_S + at_s, 9, 1) for at_s in (0, 10, 2000)]
    other = scene.slo(START_S + 1000, 5, 5, hash_="another")
    late, between = scene.values(START_S + 100, [0.9] * 3), scene.values(START_S + 1000, [0.1] * 6 + [0.9] * 4)
    rows = Deltas(slo=(*ours, other), latencies=(late, between), known=KNOWN)
    (past,) = read(database, rows, spec()).pasts
    assert past.basis == "counts+histogram"
    assert counts(past) == (27 + 6, 3 + 4, 0)  # what comes minutes after a count was counted


def test_who_waited_longer_than_the_new_threshold_in_vain_was_bad(database: str) -> None:
    waited = scene.values(START_S, [0.05, 3.0, 3.0], censored=True)
    rows = Deltas(latencies=(scene.values(START_S, [0.1] * 10), waited), known=KNOWN)
    (past,) = read(database, rows, spec("300ms")).pasts
    assert counts(past) == (10, 2, 0)


def test_two_sources_of_one_model_are_never_added(database: str) -> None:
    seen = scene.values(START_S, [0.1] * 10), scene.values(START_S, [0.05] * 11, source="engine")
    (past,) = read(database, Deltas(latencies=seen, known=KNOWN), spec("300ms")).pasts
    assert counts(past) == (10, 0, 0)


def test_a_renamed_objective_keeps_its_past(database: str) -> None:
    (past,) = read(database, Deltas(slo=(scene.slo(START_S, 90, 10),), known=KNOWN), spec(name="first-token")).pasts
    assert counts(past) == (90, 10, 0)


UNKNOWN = {
    "another patience": ("{name: up, signal: availability, target: 99%, patience: 5s}", "only events"),
    "a class": ("{name: t, signal: ttft, percentile: 95, threshold: 1s, match: {class: batch}}", "no class"),
    "a latency never seen": ("{name: e, signal: e2e, percentile: 95, threshold: 1s}", "neither"),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_the_past_cannot_answer_is_named_with_its_reason(tmp_path: object, case: str) -> None:
    authored, why = UNKNOWN[case]
    specs = objective.parse(f"service: chat\nclasses: [batch]\nobjectives:\n  - {authored}\n")
    found = read(f"sqlite:///{tmp_path}/f.db", Deltas(slo=(scene.slo(START_S, 1, 1),), known=KNOWN), specs)
    assert found.pasts == []
    (untold,) = found.untold
    assert why in untold.why


def test_the_firings_that_were_are_read_with_their_ends(database: str) -> None:
    alerts = (alert("pending", START_S - 5), alert("firing", START_S), alert("resolved", START_S + 60))
    rows = Deltas(slo=(scene.slo(START_S, 1, 0),), known=KNOWN)
    step = alert("firing", START_S + 80, "50%", BUDGET_POLICY)
    found = read(database, rows, spec(), (*alerts, alert("firing", START_S + 70, "slow"), step))
    key = "", "chat", ALL_MODELS, "ttft"
    assert sorted(found.fired, key=lambda one: one.from_s) == [
        Fired(*key, "fast", "page", START_S, START_S + 60),
        Fired(*key, "slow", "page", START_S + 70, None),
    ]


def test_a_database_that_is_no_collectors_is_said_in_one_line(tmp_path: object) -> None:
    import sqlite3

    with sqlite3.connect(f"{tmp_path}/other.db") as other:
        other.execute("CREATE TABLE slo_count (start_s)")
    other.close()
    with pytest.raises(UnusableDatabaseError, match=r"no column slo_count\.bad"):
        asyncio.run(read_back(f"sqlite:///{tmp_path}/other.db", spec()))
