"""Prometheus rules and Alertmanager routes from slo.yaml, over the sidecar's counters alone; no collector is needed.

Rooms: `group` (rules as values), `counts` (recordings of an objective), `burn_alert` and `state_alert` (when an alert
starts, holds and ends), `annotations` (what it says), `rules` (the groups of a service and their cadence), `routes`
(who is told), `unit_tests` (promtool tests made with the rules), `document` (YAML text), `artefacts` (all of it by
file name); shells: `check` (runs promtool and amtool), `cli`. `runbooks/` has one page an alert; `generated/` is made
from the slo.yaml at the root of the repository and compared by a test.
"""
