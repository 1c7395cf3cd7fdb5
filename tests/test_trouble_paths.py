"""Every alert of a service's troubles judged twice on the same counts: by the generated rules in promtool, and by the
collector.

A story is told in steps of 15 seconds, in each of which one sidecar says the same to both. At every step the two must
have the same alerts, pending or firing, page or ticket; where a gauge is looked at over a window, within one scrape,
since a window of Prometheus holds the sample at its far end too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric as WireMetric

from alerts.group import Alert as AlertRule
from alerts.group import Group
from collector.folding.rollup import Intake, fold
from collector.judging.certified_trouble import Certified
from collector.judging.evaluate import Given, evaluate
from collector.values.alerting import Alert, AlertKey
from collector.values.deltas import StreamRow
from collector.windowing.windows import Windows
from slo import signals
from slo.signals import LABELS, SIGNALS, Metric
from slo.trouble import (
    ABOVE_CERTIFIED,
    BUDGET_POLICY,
    GPU_FAULTY,
    GPU_THROTTLED,
    KV_PRESSURE,
    LOST_GPU,
    QUEUE_GROWING,
    SHARES,
    Share,
)
from tests.alerts.support import SMALL, TARGET, Check, heartbeat, promtool_test, rules, spec
from tests.collector import exports, messages
from tests.collector.stores import a_plan, batch

pytestmark = pytest.mark.tools

STEP_S, TICK_S = 15, 5
START_S = 1_800_000_000
QUIET = 80
"""Steps after which nothing of before is in any window."""
Attributes = tuple[tuple[str, str], ...]
Verdict = frozenset[tuple[str, str]]
"""The alerts there are: whom they notify, and their state."""

SPEC = SMALL.replace("window: 1h", "window: 1h\n    owner: serving")
SPEC_WITH_POLICY = SMALL.replace(
    "window: 1h",
    "window: 1h\n    policy: [{budget_left: 50%, do: freeze}, {budget_left: 0%, notify: page, do: stop}]",
)
PAGED = SMALL.replace(
    "[{name: fast, budget: 50%, long: 10m, short: 1m}]",
    "[{name: fast, budget: 50%, long: 10m, short: 1m}, "
    "{name: slow, budget: 60%, long: 20m, short: 5m, notify: ticket}]",
)
BURN = SIGNALS["ttft"].alert
GPU: Attributes = ((signals.HW_ID, "GPU-1"), (signals.HW_NAME, "H200"))


@dataclass
class Story:
    """What is said of each series, step by step: the increase of a counter, the value of a gauge."""

    text: str = SPEC
    certified_rps: str | None = None
    said: dict[tuple[Metric, Attributes], list[float]] = field(default_factory=dict)

    def then(self, steps: int, values: Mapping[tuple[Metric, Attributes], float | Sequence[float]]) -> "Story":
        """Go on for some steps; a series of which nothing is said is 0."""
        before = len(next(iter(self.said.values()), []))
        for key in (*self.said, *values):
            self.said.setdefault(key, [0.0] * before)
        for key, told in self.said.items():
            value = values.get(key, 0.0)
            told.extend([float(value)] * steps if isinstance(value, int | float) else map(float, value))
        assert {len(told) for told in self.said.values()} == {before + steps}
        return self

    @property
    def steps(self) -> int:
        return len(next(iter(self.said.values())))


def by_collector(story: Story, alert: str) -> list[Verdict]:
    """The alerts of a name after each step."""
    windows = Windows(a_plan(story.text, tick_s=TICK_S), now_s=START_S)
    active: dict[AlertKey, Alert] = {}
    ended: dict[AlertKey, Alert] = {}
    streams: dict[str, StreamRow] = {}
    certified_rps = {} if story.certified_rps is None else {("", "chat"): Certified(float(story.certified_rps))}
    found: list[Verdict] = []
    for step in range(story.steps):
        now_s = START_S + STEP_S * (step + 1)
        told = [point(key, values[step], at_s=now_s - TICK_S) for key, values in story.said.items()]
        body = batch(exports.export(*told, exports.heartbeat(at_s=now_s - TICK_S)))
        intake = Intake(now_s=now_s, tick_s=TICK_S, oldest_s=0, since_s=START_S)
        windows.add(fold(body, intake=intake, streams=streams))
        windows.advance(now_s)
        given = Given(ended=tuple(ended.values()), certified_rps=certified_rps)
        held = evaluate(windows, alerts=active, now_s=now_s, given=given).alerts
        active = {one.key: one for one in held if one.state != "resolved"}
        ended |= {one.key: one for one in held if one.state == "resolved"}
        told = [one for one in active.values() if one.key.name == alert]
        # A burn looms in the collector alone: a rule has no such state.
        told = [one for one in told if alert != BURN or one.state == "firing"]
        found.append(frozenset((dict(one.labels)["notify"], one.state) for one in told))
    return found


def point(key: tuple[Metric, Attributes], value: float, *, at_s: float) -> list[WireMetric]:
    metric, attributes = key
    said = dict(attributes)
    if metric.kind == "gauge":
        return [messages.gauge(metric.name, messages.number(value, at_s=at_s, attributes=said))]
    return [messages.counter(metric.name, messages.number(value, at_s=at_s, start_s=at_s - 1, attributes=said))]


def series(story: Story) -> dict[str, str]:
    """The same as Prometheus scrapes it: at the start, then at the end of each step."""
    found = {heartbeat(): f"0+{STEP_S}x{story.steps}"}
    for (metric, attributes), values in story.said.items():
        labels = {"service_name": "chat", "instance": "a"} | {LABELS[key]: value for key, value in attributes}
        name = metric.prometheus + "{" + ",".join(f'{label}="{value}"' for label, value in labels.items()) + "}"
        told = accumulate(values, initial=0.0) if metric.kind == "counter" else (values[0], *values)
        found[name] = " ".join(f"{value:g}" for value in told)
    return found


def checks(verdicts: Sequence[Verdict], alert: str, *, slack: int) -> list[Check]:
    """That the rules say the same, at each step around which the verdict stands for `slack` steps."""
    found: list[Check] = []
    for step, verdict in enumerate(verdicts):
        if set(verdicts[max(step - slack, 0) : step + slack + 1]) == {verdict}:
            expr = f'max by (notify, alertstate) (ALERTS{{alertname="{alert}"}})'
            samples = {f'{{notify="{notify}", alertstate="{state}"}}': 1.0 for notify, state in verdict}
            found.append((f"{STEP_S * (step + 1)}s", expr, samples))
    return found


def names(group: Group) -> set[str]:
    """The alerts of a group of rules."""
    return {rule.alert for rule in group.rules if isinstance(rule, AlertRule)}


def agree(folder: Path, story: Story, alert: str, *, slack: int = 0) -> set[Verdict]:
    """Hold the two against each other; what verdicts there were."""
    verdicts = by_collector(story, alert)
    certified_rps = {} if story.certified_rps is None else {"chat": Decimal(story.certified_rps)}
    made = rules(spec(story.text), target=replace(TARGET, certified_rps=certified_rps))
    found = [group for group in made if alert in (BUDGET_POLICY, BURN) or alert in names(group)]
    promtool_test(folder, groups=found, series=series(story), checks=checks(verdicts, alert, slack=slack))
    return set(verdicts)


NONE: Verdict = frozenset()
TICKET: Verdict = frozenset({("ticket", "firing")})
PAGE: Verdict = frozenset({("page", "firing")})
BOTH = TICKET | PAGE
PENDING: Verdict = frozenset({("ticket", "pending")})


@pytest.mark.parametrize("share", SHARES, ids=lambda share: share.name)
def test_shares_of_requests(tmp_path: Path, share: Share) -> None:
    """A storm within two minutes is none; three in ten are a ticket, nearly all of them a page where that may be."""
    ok = (signals.REQUESTS, ((signals.OUTCOME, "ok"),))
    own = (share.metric, () if share.outcome is None else ((signals.OUTCOME, share.outcome),))
    synthetic = (signals.REQUESTS, ((signals.OUTCOME, "ok"), (signals.CLASS, signals.SYNTHETIC_CLASS)))

    def traffic(bad: float) -> dict[tuple[Metric, Attributes], float]:
        return {ok: max(40, bad) - (0 if share.outcome is None else bad), own: bad, synthetic: 500}

    story = Story().then(QUIET, traffic(0)).then(8, traffic(160)).then(QUIET, traffic(0))
    story.then(60, traffic(12)).then(60, traffic(39)).then(QUIET, traffic(0))
    assert agree(tmp_path, story, share.name) == ({NONE, TICKET, BOTH} if share.may_page else {NONE, TICKET})


def test_a_night_of_few_requests_is_no_surge(tmp_path: Path) -> None:
    share = SHARES[0]
    bad = (signals.REQUESTS, ((signals.OUTCOME, str(share.outcome)),))
    story = Story().then(QUIET, {bad: [1.0, 0.0, 0.0, 0.0, 0.0] * (QUIET // 5)})
    assert agree(tmp_path, story, share.name) == {NONE}


def test_budget_policy(tmp_path: Path) -> None:
    of = spec(SPEC_WITH_POLICY).objectives[0]
    key: Attributes = ((signals.REQUEST_MODEL, "m1"), (signals.OBJECTIVE, of.name), (signals.OBJECTIVE_HASH, of.hash))
    good, bad = ((signals.SLO_EVENTS, (*key, (signals.RESULT, result))) for result in (signals.GOOD, signals.BAD))
    story = Story(SPEC_WITH_POLICY).then(100, {good: 40, bad: 0}).then(30, {good: 20, bad: 20})
    story.then(250, {good: 40, bad: 0})
    # The age of a service younger than its period is known to the minute.
    assert agree(tmp_path, story, BUDGET_POLICY, slack=1) == {NONE, TICKET, BOTH}


def test_a_ticket_does_not_follow_the_page_of_the_same_burn(tmp_path: Path) -> None:
    """It begins neither while the page stands nor before its own short window is past; one that began before goes on,
    and one that burns on after all that is told."""
    of = spec(PAGED).objectives[0]
    key: Attributes = ((signals.REQUEST_MODEL, "m1"), (signals.OBJECTIVE, of.name), (signals.OBJECTIVE_HASH, of.hash))
    good, bad = ((signals.SLO_EVENTS, (*key, (signals.RESULT, result))) for result in (signals.GOOD, signals.BAD))
    calm, slow, hard = {good: 40, bad: 0}, {good: 35, bad: 5}, {good: 20, bad: 20}
    story = Story(PAGED).then(QUIET, calm).then(30, hard).then(120, calm)
    alone = story.steps
    story.then(80, slow).then(30, hard).then(100, calm)
    burned = story.steps
    story.then(30, hard).then(100, slow)
    assert agree(tmp_path, story, BURN, slack=1) == {NONE, PAGE, BOTH, TICKET}
    verdicts = by_collector(story, BURN)
    assert set(verdicts[:alone]) == {NONE, PAGE}
    assert set(verdicts[alone:burned]) == {NONE, TICKET, BOTH}
    assert [one for one, after in pairwise([NONE, *verdicts[burned:]]) if one != after] == [NONE, PAGE, NONE]


def test_pressure_on_the_kv_cache(tmp_path: Path) -> None:
    """A full cache that preempts nobody is well used, one that preempts and is not full is another's business."""
    full, thrown_out = (signals.KV_OCCUPANCY, ()), (signals.ENGINE_PREEMPTIONS, ())
    story = Story().then(QUIET, {full: 0.97}).then(QUIET, {full: 0.5, thrown_out: 1}).then(QUIET, {full: 0.5})
    story.then(60, {full: 0.97, thrown_out: 1}).then(QUIET, {full: 0.97})
    assert agree(tmp_path, story, KV_PRESSURE, slack=1) == {NONE, PENDING, TICKET}


def test_a_growing_queue(tmp_path: Path) -> None:
    """It waits five minutes, and outlives the growth by five."""
    waits, ends = (signals.ENGINE_WAITING, ()), (signals.REQUESTS, ((signals.OUTCOME, "ok"),))
    grows, shrinks = [2.0 * n for n in range(60)], [118 - 2.0 * n for n in range(60)]
    story = Story().then(QUIET, {waits: 0, ends: 10}).then(60, {waits: grows, ends: 10})
    story.then(60, {waits: shrinks, ends: 10}).then(QUIET, {waits: 12, ends: 10}).then(QUIET, {waits: 0, ends: 10})
    assert agree(tmp_path, story, QUEUE_GROWING, slack=1) == {NONE, PENDING, TICKET}


@pytest.mark.parametrize("late", [signals.OLDEST_AGE, signals.TTFT_PREDICTED])
def test_a_queue_that_drains_in_time_and_where_a_first_token_is_late(tmp_path: Path, late: signals.Metric) -> None:
    """By its length it drains in time; but somebody is never served, or will not be."""
    waits, ends = (signals.ENGINE_WAITING, ()), (signals.REQUESTS, ((signals.OUTCOME, "ok"),))
    oldest, grows = (late, ()), [2.0 * n for n in range(60)]
    story = Story().then(QUIET, {waits: 0, ends: 3000}).then(60, {waits: grows, ends: 3000, oldest: 0.2})
    story.then(QUIET, {waits: 0, ends: 3000}).then(60, {waits: grows, ends: 3000, oldest: [0.7 * n for n in range(60)]})
    story.then(QUIET, {waits: 0, ends: 3000})
    assert agree(tmp_path, story, QUEUE_GROWING, slack=1) == {NONE, PENDING, TICKET}


def test_a_long_queue_that_drains_in_time_is_none(tmp_path: Path) -> None:
    waits, ends = (signals.ENGINE_WAITING, ()), (signals.REQUESTS, ((signals.OUTCOME, "ok"),))
    story = Story().then(60, {waits: [float(n) for n in range(60)], ends: 3000})
    assert agree(tmp_path, story, QUEUE_GROWING) == {NONE}


def test_a_synthetic_load_is_nobodys_ticket(tmp_path: Path) -> None:
    """What fills cache and queue for as long as it takes is told once users fill them, and not before."""
    full, thrown_out, waits = (signals.KV_OCCUPANCY, ()), (signals.ENGINE_PREEMPTIONS, ()), (signals.ENGINE_WAITING, ())
    users = (signals.REQUESTS, ((signals.OUTCOME, "ok"),))
    synthetic = (signals.REQUESTS, ((signals.OUTCOME, "ok"), (signals.CLASS, signals.SYNTHETIC_CLASS)))
    well = {full: 0.3, users: 10.0, synthetic: 0.0}

    def ill(steps: int, of_users: float, of_class: float) -> dict[tuple[Metric, Attributes], float | Sequence[float]]:
        grows = [2.0 * n for n in range(steps)]
        return {full: 0.97, thrown_out: 1, waits: grows, users: of_users, synthetic: of_class}

    story = Story().then(QUIET, well).then(16, ill(16, 10, 100)).then(QUIET, well).then(60, ill(60, 10, 15))
    story.then(QUIET, well).then(60, ill(60, 10, 5)).then(QUIET, well)
    for alert in (KV_PRESSURE, QUEUE_GROWING):
        folder = tmp_path / alert
        folder.mkdir()
        assert agree(folder, story, alert, slack=1) == {NONE, PENDING, TICKET}
        told = [verdict == TICKET for verdict in by_collector(story, alert)]
        assert not any(told[: 3 * QUIET + 76])
        assert any(told[3 * QUIET + 76 :])


def test_a_load_above_the_certified_one(tmp_path: Path) -> None:
    """What is refused or synthetic is no load; a peak of five minutes is none yet, and one that lasts is told."""
    ok, shed, refused = ((signals.REQUESTS, ((signals.OUTCOME, outcome),)) for outcome in ("ok", "rejected", "quota"))
    synthetic = (signals.REQUESTS, ((signals.OUTCOME, "ok"), (signals.CLASS, signals.SYNTHETIC_CLASS)))
    calm = {ok: 14, refused: 20, synthetic: 90}
    story = Story(certified_rps="1.5").then(QUIET, calm).then(20, {ok: 33}).then(QUIET, calm)
    story.then(90, {ok: 20, shed: 12}).then(QUIET, calm)
    assert agree(tmp_path, story, ABOVE_CERTIFIED, slack=1) == {NONE, PENDING, TICKET}


def test_a_throttled_gpu(tmp_path: Path) -> None:
    """A cap on its power is how a GPU is run; heat for a tenth of the time is a ticket, once it has lasted."""
    hot, capped = ((signals.GPU_THROTTLE, (*GPU, (signals.REASON, reason))) for reason in ("hw_thermal", "sw_power"))
    story = Story().then(QUIET, {capped: 15}).then(40, {hot: 5}).then(QUIET, {hot: 0}).then(7, {hot: 15})
    story.then(QUIET, {hot: 1})
    assert agree(tmp_path, story, GPU_THROTTLED) == {NONE, PENDING, TICKET}


def test_a_faulty_gpu(tmp_path: Path) -> None:
    xid, own, corrected = (
        (signals.GPU_ERRORS, (*GPU, (signals.ERROR_TYPE, kind))) for kind in ("xid", "xid_application", "corrected")
    )
    pending = (signals.GPU_REMAP_PENDING, GPU)
    story = Story().then(QUIET, {own: 1, corrected: 9}).then(1, {xid: 1}).then(QUIET, {xid: 0})
    story.then(20, {pending: 1}).then(QUIET, {pending: 0})
    assert agree(tmp_path, story, GPU_FAULTY) == {NONE, TICKET}


def test_a_lost_gpu(tmp_path: Path) -> None:
    lost = (signals.GPU_LOST, GPU)
    story = (
        Story().then(QUIET, {lost: 0}).then(3, {lost: 1}).then(20, {lost: 0}).then(40, {lost: 1}).then(20, {lost: 0})
    )
    assert agree(tmp_path, story, LOST_GPU) == {NONE, frozenset({("page", "pending")}), PAGE}
