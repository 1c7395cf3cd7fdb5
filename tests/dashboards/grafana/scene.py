"""A small dashboard to look at, panel by panel."""

from decimal import Decimal

from dashboards.grafana.board import Board, dashboard
from dashboards.grafana.grid import Panel, Section
from dashboards.model import PROMETHEUS, About, Datasource, Marks, Query, Step, Variable
from tests.dashboards.support import Found

ABOUT = About("Title", "What it is.", "s", least=Decimal(0), most=Decimal("1.5"))
STEPS = (Step("green", Decimal(0)), Step("red", Decimal("0.5")))


def query(datasource: Datasource = PROMETHEUS, **changes: object) -> Query:
    return Query(datasource, "up", ("up", "down"), **changes)  # type: ignore[arg-type]


def body(panel: Panel) -> Found:
    return dict(panel.body)


def board(datasource: Datasource = PROMETHEUS, *, shows_told: bool = False) -> Board:
    variable = Variable("model_name", "Model", "label_values(up, model_name)", ".*", "Which model.")
    marks = Marks("Alerts", "ALERTS", "red", "{{alertname}}", "{{objective}}", "severity")
    tags = ("firsttoken", datasource.name)
    return Board("firsttoken-x", "X", "About x.", datasource, (variable,), (marks,), tags, 15, shows_told=shows_told)


def built(*made: Panel, datasource: Datasource = PROMETHEUS, is_open: bool = True, shows_told: bool = False) -> Found:
    return dict(dashboard(board(datasource, shows_told=shows_told), [Section("Section", made, is_open)]))
