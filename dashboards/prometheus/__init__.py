"""The dashboards' questions in PromQL: over the records of the generated rules and the series that sidecars and
collectors show.

`selection` holds the variables of a dashboard as matchers, `pieces` what several expressions share; each other room
answers one subject of `questions`. `source` puts them together.
"""
