"""What a team has promised to do when so little of a budget is left: told once, of all models together (DESIGN 4.2)."""

from collections.abc import Iterator, Sequence

from collector.values import alerting, words
from collector.values.alerting import AlertKey, Wanted
from collector.values.columns import Columns
from collector.values.verdicts import BudgetRow
from slo import burn
from slo.burn import severity
from slo.objective import Objective, PolicyStep, Spec
from slo.quantity import duration_text, percent_text
from slo.signals import ALL_MODELS
from slo.trouble import BUDGET_POLICY, STEP_LABEL


def wanted(specs: Sequence[Spec], budgets: Columns[BudgetRow]) -> Iterator[Wanted]:
    """The steps that are due by these budgets; none while too little of the period is known."""
    promised = {(spec.service, one.name): one for spec in specs for one in spec.objectives if one.policy}
    if not promised:
        return
    for row in budgets.where("model", ALL_MODELS):
        objective = promised.get((row.service, row.objective))
        if objective is None or row.coverage < burn.MIN_COVERAGE_EXHAUSTED:
            continue
        for step in objective.policy:
            if row.remaining <= float(step.budget_left):
                yield _alert(objective, step, row)


def _alert(objective: Objective, step: PolicyStep, row: BudgetRow) -> Wanted:
    left, whose = percent_text(step.budget_left), (row.environment, row.service, row.model, row.objective)
    routed: dict[str, str | None] = {
        **objective.labels,
        "severity": severity(step.notify),
        "notify": step.notify,
        "owner": objective.owner,
        STEP_LABEL: left,
    }
    place = f"{row.service} in {row.environment}" if row.environment else row.service
    return Wanted(
        AlertKey(BUDGET_POLICY, *whose, tier=left),
        "firing",
        alerting.labels(AlertKey(BUDGET_POLICY, *whose), routed),
        alerting.annotations(
            summary=f"The error budget of objective {row.objective} of {row.service} asks for a step of its policy.",
            description=(
                f"{place}, all models: {words.share(row.remaining)} of the budget of {duration_text(objective.window)} "
                f"is left, and from {left} on the policy says: {step.do}"
            ),
            runbook_url=objective.runbook_url or alerting.runbook(BUDGET_POLICY),
        ),
    )
