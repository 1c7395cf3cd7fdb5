"""The collector: OTLP in, SQL out, rolling windows, burn rates, budgets and alerts.

    a sender   ─▶ post | rpc ─▶ intake ─▶ otlp ─▶ rollup ─▶ store ─▶ the database ─▶ recall (at a start)
                                                              └────▶ ledger ─▶ windows ◀──┘
    a tick     ─▶ ticks ─▶ evaluate, of the windows ─▶ figures ─▶ the database
                                                    ├─▶ notify ─▶ receivers ─▶ people
                                                    └─▶ desk ─▶ service ─▶ exposition | page
    a question ─▶ questions ─▶ reader ─▶ reads, of the database

The rooms, in the order that data takes. Those with a * are shells, which hold sockets, clocks, threads, chance or a
database's connection; the others take values and give values.

    the start         cli* options address running* errors
    the doors         listener* connection* gate tls* spec_watch*
    a body            post* rpc* body intake* reply
    what it says      otlp sealed wire points distribution spans span_shapes measurement
    a latency         histogram quantile
    what it adds      rollup streams precedence deltas admission
    counted once      store* ledger* commit* journal* tallies
    its rows          schema sql_views ddl* partitions* rows upsert*
    the database      database* revisions* sqlite_file* stacks* retention* upkeep*
    the past again    recall* bins
    windows           windows rolling plane latencies events coverage fleet
    judged            evaluate track track_windows burning verdicts percentiles columns
    alerts            alerting burn_alert trouble
    a drift           drift_watch drift usual mix drift_past* drift_alert
    the tick          ticks* drifting* leader* figures*
    people told       notify* notice receivers* webhook notified*
    all it knows      desk* service* status readiness exposition samples selfmetrics
    the page          page view standing alert_lines words charts history*
    questions         questions* asked answers reader* reads* ondemand*
    replay            replay_cli* replay replay_past* replay_report read_only*

Beside them `migrations` holds the older revisions of the tables, `templates` and `static` what the page is drawn with.
What can go wrong is drawn in `errors`.
"""
