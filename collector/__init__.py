"""The collector: OTLP in, SQL out, rolling windows, burn rates, budgets and alerts.

Pure rooms, in the order that data passes them: `otlp` (with `wire`, `points`, `distribution`) -> `measurement` ->
`rollup` (with `streams`) -> `deltas` -> `windows` (with `rolling`, `plane`, `events`, `coverage`, `fleet`) ->
`evaluate` (with `quantile`, `track`, `burning`, `trouble`, `alerting`). `histogram` is the algebra under all of them.
The other rooms are shells: they read clocks, sockets and databases, and call these.
"""
