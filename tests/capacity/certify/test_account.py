"""What was heard is heard again, from memory and from a file."""

import json

import numpy as np
import pytest

from capacity.certify.account import Account, account
from capacity.certify.trial import Answer, AskAlone, AskFlood, AskRun, Ceiling, Seen
from capacity.errors import WorkloadError


def seen(requests: int) -> Seen:
    return Seen(((np.arange(requests) % 3 == 0).astype(np.int8),), requests / 2, 1.5, is_client_late=False)


def same(one: Answer | None, other: Answer) -> bool:
    if not isinstance(one, Seen) or not isinstance(other, Seen):
        return one == other
    alike = all((a == b).all() for a, b in zip(one.bad, other.bad, strict=True))
    return alike and (one.seconds, one.at_once) == (other.seconds, other.at_once)


def filled() -> Account:
    made = Account(calm_s=0.25)
    made.hear(AskAlone(50), seen(50))
    made.hear(AskFlood(), Ceiling(10, 0.5, 8))
    made.hear(AskRun(1, 5.0, "empty", 100), seen(100))
    made.hear(AskRun(1, 5.0, "empty", 200), seen(200))
    made.over({"concurrency": {"mean": 2.0}})
    made.hear(AskRun(2, 5.0, "overload", 100), seen(100))
    return made


def test_every_look_is_recalled_as_it_was() -> None:
    for one in (filled(), account(json.loads(json.dumps(filled().as_json())))):
        assert same(one.recall(AskAlone(50)), seen(50))
        assert one.recall(AskFlood()) == Ceiling(10, 0.5, 8)
        for requests in (100, 200):
            assert same(one.recall(AskRun(1, 5.0, "empty", requests)), seen(requests))
        assert one.recall(AskRun(1, 5.0, "empty", 400)) is None
        assert one.runs[1].facts == {"concurrency": {"mean": 2.0}}
        assert one.calm_s == 0.25


def test_a_run_that_is_not_over_is_not_recalled() -> None:
    assert filled().recall(AskRun(2, 5.0, "overload", 100)) is None
    assert set(account(json.loads(json.dumps(filled().as_json()))).runs) == {1}


@pytest.mark.parametrize("heard", [None, {}, {"alone": 3, "ceiling": None, "runs": [], "calm_s": 0}])
def test_what_is_no_account_is_refused(heard: object) -> None:
    with pytest.raises(WorkloadError, match="begin anew"):
        account(heard)
