"""How long a state must stand, and how long its alert outlives it: as a rule engine counts `for` and its keeping."""

import numpy as np
import pytest

from collector.judging.lasting import Lasting, lasting, moments_s, state
from collector.values.alerting import Alert, AlertKey
from slo.trouble import Trouble

NOW_S = 1_800_000_000
KEY = AlertKey("LLMQueueGrowing", "", "chat")
WAITS = Trouble("LLMQueueGrowing", "ticket", for_s=30, keep_s=20)
AT_ONCE = Trouble("LLMEmptyReplies", "ticket")


def answers(text: str, trouble: Trouble = WAITS) -> Lasting:
    """`x` where it stood, the last is now; before all of them it did not."""
    moments = moments_s(trouble, now_s=NOW_S, tick_s=10)
    stood = [mark == "x" for mark in text.rjust(len(moments), ".")][-len(moments) :]
    return lasting(trouble, np.array(stood), tick_s=10)


def test_the_ticks_that_decide_reach_as_far_back_as_the_times_of_the_alert() -> None:
    assert moments_s(WAITS, now_s=NOW_S, tick_s=10).tolist() == [NOW_S - 30, NOW_S - 20, NOW_S - 10, NOW_S]
    assert moments_s(WAITS, now_s=NOW_S, tick_s=20).tolist() == [NOW_S - 40, NOW_S - 20, NOW_S]
    assert moments_s(AT_ONCE, now_s=NOW_S, tick_s=10).tolist() == [NOW_S]


@pytest.mark.parametrize(
    ("stood", "expected"),
    [
        ("....", (False, False, False)),
        ("...x", (True, False, True)),
        (".xxx", (True, False, True)),
        ("xxxx", (True, True, True)),
        ("xxx.", (False, False, True)),
        ("xx..", (False, False, True)),
        ("x...", (False, False, False)),
    ],
)
def test_it_waits_and_it_is_kept(stood: str, expected: tuple[bool, bool, bool]) -> None:
    assert answers(stood) == Lasting(*expected)


def test_without_times_of_its_own_an_alert_is_there_while_its_state_is() -> None:
    assert answers("x", AT_ONCE) == Lasting(stands=True, long=True, lately=True)
    assert answers(".", AT_ONCE) == Lasting(stands=False, long=False, lately=False)


@pytest.mark.parametrize(
    ("places", "before", "expected"),
    [
        ([], None, None),
        (["...x"], None, "pending"),
        (["xxxx"], None, "firing"),
        (["...x", "..xx"], None, "pending"),
        (["...x", "xxxx"], None, "firing"),
        (["xxx."], None, None),
        (["xxx."], "pending", None),
        (["xxx."], "firing", "firing"),
        (["x..."], "firing", None),
    ],
)
def test_one_place_is_enough_and_two_halves_are_not(
    places: list[str], before: str | None, expected: str | None
) -> None:
    alerts = {} if before is None else {KEY: Alert(KEY, before, 0, None, (), ())}  # type: ignore[arg-type]
    assert state(KEY, map(answers, places), alerts=alerts) == expected
