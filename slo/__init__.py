"""The vocabulary: what is measured, what is promised, and the arithmetic between them.

Rooms: `signals` (names), `quantity` (durations, shares and sizes as people write them), `objective` (slo.yaml) and
`fields` (its kinds of value), `burn` (tiers and budgets), `chance` (how often a tier rings for nothing), `words` (an
objective as people read it), `promql` (the expressions that rules and dashboards share), `trouble` (alerts on a state
rather than a burn), `labels` (those that alerts have by themselves), `source` (YAML with positions), `openslo` (SLOs
that people already have), `output` (files written whole or not at all), `sight` (whether files have changed), `flags`
(what all command lines share), `capacity_result` (what a server was found to hold), `promised` (for which promises,
against those of today), `check` (what a spec's alerts can do), `cli`.
Knows nothing of sockets, clocks, databases or telemetry libraries: pydantic and PyYAML, and rich where it prints.
"""
