"""The dashboards' questions in SQL: over the collector's tables, as the data sources for PostgreSQL and SQLite take it.

`dialect` holds what the two databases write differently, `selection` the variables of a dashboard as conditions,
`pieces` what several queries share; each other room answers one subject of `questions`. `source` puts them together.

Every query of a chart gives `time` (epoch seconds, ascending), `metric` (the name of the line) and `value`; one of a
table gives the columns that `questions` names. `value` is cast, for the SQLite plugin takes the type of a column from
its first row and would cut every later figure to a whole number.
"""
