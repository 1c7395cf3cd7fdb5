"""Every rule as a sentence, and the function that says where it is broken."""

from collections.abc import Callable, Iterator, Mapping

from dashboards.check import panels, structure, variables
from dashboards.model import JsonObject

Rule = Callable[[JsonObject], Iterator[str]]

RULES: Mapping[str, Rule] = {
    "the schema is one that no old migration touches": structure.schema,
    "nothing is null but the id that Grafana gives": structure.nulls,
    "no key is one that Grafana has given up": structure.legacy,
    "every datasource is the one that the variable names": structure.datasources,
    "the datasource is a variable of its type": structure.datasource_variable,
    "nothing waits for the import dialogue to fill it in": structure.inputs,
    "every panel has an id of its own": structure.panel_ids,
    "the queries of a panel are told apart": panels.ref_ids,
    "no panel covers another or leaves the page": structure.grid,
    "panels are few, however many services there are": structure.few_panels,
    "every panel says what it shows and names what it reads": panels.described,
    "every panel has a unit": panels.units,
    "the unit is that of the figures": panels.true_units,
    "every panel has words for no data": panels.no_values,
    "every panel has a least value, or shows a budget that can be overspent": panels.bounds,
    "not a number is shown as no traffic": panels.nan,
    "rates are taken over the interval that Grafana reckons": panels.rates,
    "no step is finer than figures come in": panels.min_step,
    "it refreshes, shares the crosshair, and shows the reader's own time": structure.manners,
    "links lead to its siblings and keep variables and time": structure.links,
    "every variable takes several values, and All": variables.several,
    "every variable that is asked for is there": variables.known,
    "every variable that is there is asked for": variables.used,
    "no choice of its maker's is left in it": variables.leaks,
    "variables stand where their values are escaped": variables.matchers,
    "the uid is short, stable and ours": structure.uid,
    "thresholds ascend": panels.steps,
    "it names every plugin that it needs": structure.requires,
}


def faults(found: JsonObject) -> dict[str, list[str]]:
    """What breaks which rule."""
    broken = {sentence: list(rule(found)) for sentence, rule in RULES.items()}
    return {sentence: where for sentence, where in broken.items() if where}
