"""What a dashboard is before a datasource and a contract are given, and how it then becomes JSON."""

from collections.abc import Callable
from dataclasses import dataclass

from dashboards.grafana.board import Board, dashboard
from dashboards.grafana.grid import Section
from dashboards.model import PROMETHEUS, JsonObject
from dashboards.questions import Events, Source
from slo.capacity_result import CapacityResult
from slo.objective import Spec
from slo.promql import OBJECTIVE_LABEL, SERVICE_KEY
from slo.signals import MODEL_LABEL

TAG = "firsttoken"
OF_MODELS = (*SERVICE_KEY, MODEL_LABEL)
OF_OBJECTIVES = (*OF_MODELS, OBJECTIVE_LABEL)


@dataclass(frozen=True, slots=True)
class Given:
    """What dashboards are made for: the contracts, and what is known of capacity."""

    specs: tuple[Spec, ...]
    results: tuple[CapacityResult, ...] = ()

    @property
    def objectives(self) -> int:
        return sum(len(spec.objectives) for spec in self.specs)


@dataclass(frozen=True, slots=True)
class Plan:
    """A dashboard of any datasource. `name` is that of its file and in its uid."""

    name: str
    title: str
    description: str
    variables: tuple[str, ...]
    sections: Callable[[Source, Given], tuple[Section, ...]]
    events: tuple[Events, ...] = ("alerts",)
    shows_told: bool = False


def drawn(plan: Plan, source: Source, given: Given, *, min_step_s: int) -> JsonObject:
    """The JSON of a dashboard over `source`, which has the plan's variables. `min_step_s`: how often figures come."""
    datasource = source.datasource
    is_first = datasource is PROMETHEUS
    board = Board(
        uid=f"firsttoken-{plan.name}" + ("" if is_first else f"-{datasource.name}"),
        title=plan.title if is_first else f"{plan.title} ({datasource.title})",
        description=plan.description,
        datasource=datasource,
        variables=source.frame.variables(),
        marks=source.frame.marks(*plan.events),
        tags=(TAG, datasource.name),
        min_step_s=min_step_s,
        shows_told=plan.shows_told,
    )
    return dashboard(board, [section for section in plan.sections(source, given) if section.panels])
