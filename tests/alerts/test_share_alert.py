"""Shares of requests that come to nothing: tickets and pages, put to the real rule engine by promtool."""

from pathlib import Path

import pytest

from alerts.annotations import Links
from alerts.group import Group
from alerts.share_alert import share_alerts
from slo.trouble import SHARES
from tests.alerts.support import promtool_test, spec

pytestmark = pytest.mark.tools

GROUP = Group("g", 30, tuple(share_alerts(spec(), Links())))


def requests(outcome: str, request_class: str = "") -> str:
    klass = f',class="{request_class}"' if request_class else ""
    of = f'service_name="chat",instance="a",model_name="m1",outcome="{outcome}"{klass}'
    return f"firsttoken_requests_total{{{of}}}"


def went_wrong(how: str) -> str:
    return f'firsttoken_requests_{how}_total{{service_name="chat",instance="a",model_name="m1"}}'


def firing(alertname: str) -> str:
    return f'count by (notify) (ALERTS{{alertname="{alertname}",alertstate="firing"}})'


TICKET = {'{notify="ticket"}': 1.0}
BOTH = TICKET | {'{notify="page"}': 1.0}
EMPTY, CLIENT, LEFT, BROKEN = (share.name for share in SHARES)
OK_10 = {requests("ok"): "0+10x60"}

CASES = {
    "one empty reply in ten": (EMPTY, {requests("ok"): "0+9x60", requests("no_output"): "0+1x60"}, TICKET),
    "one empty reply in fifty": (EMPTY, {requests("ok"): "0+49x60", requests("no_output"): "0+1x60"}, {}),
    "nothing but empty replies": (EMPTY, {requests("ok"): "0x60", requests("no_output"): "0+3x60"}, BOTH),
    "empty replies to synthetic requests": (
        EMPTY,
        OK_10 | {requests("no_output", "synthetic"): "0+90x60"},
        {},
    ),
    "empty replies to a class": (EMPTY, OK_10 | {requests("no_output", "batch"): "0+5x60"}, TICKET),
    "a few in a quiet hour": (EMPTY, {requests("ok"): "0x60", requests("no_output"): "0x40 1x4 2x4 3x12"}, {}),
    "every key expired": (CLIENT, {requests("ok"): "0+10x20 200x40", requests("client_error"): "0x20 0+10x40"}, BOTH),
    "a quota burst": (CLIENT, OK_10 | {requests("quota"): "0+900x60", requests("client_error"): "0x60"}, {}),
    "a retry storm within a minute": (
        CLIENT,
        {requests("ok"): "0+1x60", requests("client_error"): "0x50 0 300 600 600x8"},
        {},
    ),
    "a third left before any token": (LEFT, OK_10 | {went_wrong("abandoned"): "0+4x60"}, TICKET),
    "everybody leaves": (
        LEFT,
        {requests("cancelled"): "0+10x60", went_wrong("abandoned"): "0+10x60"},
        BOTH,
    ),
    "left in mid-answer, as users do": (LEFT, {requests("cancelled"): "0+9x60", went_wrong("abandoned"): "0x60"}, {}),
    "one stream in ten breaks": (BROKEN, OK_10 | {went_wrong("broken"): "0+1x60"}, TICKET),
    "all streams break: availability pages": (
        BROKEN,
        {requests("error"): "0+10x60", went_wrong("broken"): "0+10x60"},
        TICKET,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_of_whom_is_told(tmp_path: Path, case: str) -> None:
    alertname, series, expected = CASES[case]
    checks = [("28m", firing(alertname), expected)]
    promtool_test(tmp_path, groups=[GROUP], series=series, checks=checks, step="30s")


def test_it_ends_when_the_short_window_is_well_again(tmp_path: Path) -> None:
    series = {requests("ok"): "0+10x20 200x20 210+10x20", requests("no_output"): "0x20 10+10x19 200x20"}
    checks = [("18m", firing(EMPTY), TICKET), ("26m", firing(EMPTY), {})]
    promtool_test(tmp_path, groups=[GROUP], series=series, checks=checks, step="30s")


def test_only_what_leaves_users_with_nothing_may_page() -> None:
    told = {(rule.alert, rule.labels["notify"]) for rule in GROUP.rules if hasattr(rule, "alert")}
    assert {name for name, notify in told if notify == "page"} == {share.name for share in SHARES if share.may_page}
    assert {name for name, notify in told if notify == "ticket"} == {share.name for share in SHARES}
