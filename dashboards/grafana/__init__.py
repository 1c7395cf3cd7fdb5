"""Grafana's JSON: panels, the dashboard around them, and where on it they stand. The only rooms that know grafanalib.

`panels` draws one panel, `grid` gives each its place, `board` makes the whole importable, `plain` clears away what the
library still writes of an older Grafana.
"""
