"""What the collector says of its own work, as values."""

from collector.answering.selfmetrics import Size, Work, families
from collector.keeping.tallies import Tallies
from collector.telling.notify import Deliveries
from collector.ticking.ticks import TickTallies
from slo import signals
from slo.signals import COLLECTOR_METRICS, Metric

STORE = Tallies(bodies=7, repeated=2, points=50, spans=9, newest_s=990, dropped={"too old": 3})
TICKS = TickTallies(ticks=5, failures=1, unsaved=2, seconds=0.5, last_s=0.1)


def said(work: Work) -> dict[Metric, dict[str, float]]:
    return {one.metric: dict(one.samples) for one in families(work)}


def full() -> Work:
    deliveries = {"am": Deliveries(sent=4, failures=1)}
    return Work(1000.0, STORE, TICKS, 3, 995, Size(8192, 4096), deliveries, {400: 2})


def test_every_figure_of_the_work_is_told() -> None:
    found = said(full())
    assert found[signals.INTAKE_BODIES] == {"": 7}
    assert found[signals.INTAKE_POINTS] == {"": 50}
    assert found[signals.INTAKE_SPANS] == {"": 9}
    assert found[signals.INTAKE_DROPPED] == {"too old": 3}
    assert found[signals.INTAKE_REFUSED] == {"400": 2}
    assert found[signals.INTAKE_WAITING] == {"": 3}
    assert found[signals.INTAKE_LAG] == {"": 10.0}
    assert found[signals.EVALUATION_AGE] == {"": 5.0}
    assert found[signals.TICK_TIME] == {"": 0.5}
    assert found[signals.TICK_UNSAVED] == {"": 2}
    assert (found[signals.DATABASE_SIZE], found[signals.DATABASE_WAL]) == ({"": 8192}, {"": 4096})
    assert found[signals.NOTIFIED] == {"am": 4}


def test_every_family_is_a_metric_of_the_table_once() -> None:
    metrics = [one.metric for one in families(full())]
    assert len(metrics) == len(set(metrics))
    assert set(metrics) <= set(COLLECTOR_METRICS)


def test_what_is_not_known_is_absent() -> None:
    found = said(Work(1000.0, Tallies(), TickTallies()))
    absent = (signals.INTAKE_LAG, signals.EVALUATION_AGE, signals.DATABASE_SIZE, signals.DATABASE_WAL)
    assert not set(absent) & set(found)
    assert signals.DATABASE_WAL not in said(Work(1000.0, STORE, TICKS, size=Size(1)))


def test_a_clock_behind_the_senders_makes_no_negative_lag() -> None:
    found = said(Work(900.0, STORE, TICKS, evaluated_s=995))
    assert (found[signals.INTAKE_LAG], found[signals.EVALUATION_AGE]) == ({"": 0.0}, {"": 0.0})
