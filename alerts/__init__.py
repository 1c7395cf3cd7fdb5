"""Prometheus rules and Alertmanager routes from slo.yaml, over the sidecar's counters alone; no collector is needed.

Rooms: `group` (rules as values), `counts` (recordings of an objective), `burn_alert` (when a tier fires, holds and
ends), `trouble_alert` (an alert from the table of troubles), and by what they speak of `state_alert`, `share_alert`,
`saturation_alert`, `gpu_alert`, `fleet` (what is nobody's service); `annotations` (what an alert says), `rules` (the
groups of a service and their cadence), `receiver` and `routes` (who is told, and how), `traffic`, `episodes` and
`unit_tests` (promtool tests made with the rules), `crd` and `grafana` (the same rules for others), `document` (YAML
text), `artefacts` (all of it by file name); shells: `check` (runs promtool and amtool), `cli`. `runbooks/` has one page
an alert; `generated/` is made from the slo.yaml at the root of the repository and compared by a test.
"""
