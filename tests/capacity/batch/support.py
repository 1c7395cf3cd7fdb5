"""What several of these tests need: a setting for a fake server, and a search that is over without one."""

from collections.abc import Callable

from capacity.batch.search import Outcome, Plan, search
from capacity.batch.sitting import Account
from capacity.batch.trial import Answer, Ask
from capacity.certify.endpoint import Setting
from capacity.certify.lengths import lengths
from capacity.certify.promises import Promises
from capacity.certify.workload import Workload
from capacity.client import target
from capacity.sending import Limits
from slo.objective import Objective

TPOT = Objective.model_validate({"name": "tpot", "signal": "tpot", "percentile": 80, "threshold": "60ms"})
TTFT = Objective.model_validate({"name": "ttft", "signal": "ttft", "percentile": 80, "threshold": "300ms"})


def setting(url: str, *, workload: str = "20-40:3") -> Setting:
    return Setting(
        target(url), Workload("m", lengths(workload)), Promises((TTFT, TPOT), ()), Limits(64, 10.0), "synthetic", 7
    )


def searched(plan: Plan, answer: Callable[[Ask], Answer]) -> tuple[Outcome, Account]:
    """A search to its end, and its account."""
    going, account = search(plan), Account()
    ask = next(going)
    while True:
        heard = answer(ask)
        account.hear(ask, heard)
        try:
            ask = going.send(heard)
        except StopIteration as end:
            return end.value, account
