"""The collector: OTLP in, SQL out, rolling windows, burn rates, budgets and alerts.

    a sender   ─▶ post | rpc ─▶ intake ─▶ otlp ─▶ rollup ─▶ store ─▶ the database ─▶ recall (at a start)
                                                              └────▶ ledger ─▶ windows ◀──┘
    a tick     ─▶ ticks ─▶ evaluate, of the windows ─▶ figures ─▶ the database
                                                    ├─▶ notify ─▶ receivers ─▶ people
                                                    └─▶ desk ─▶ service ─▶ exposition | page
    a question ─▶ questions ─▶ reader ─▶ reads, of the database
    the database ─▶ mirror ─▶ engine, of ClickHouse (a process of its own)

Each folder is a floor: it knows floors above it here, and none below. Rooms with a * are shells, which hold sockets,
clocks, threads, chance or a database's connection; the others take values and give values. The ground and the start lie
beside the folders.

    the ground        errors schema schema_columns spec_watch* garbage
    values            histogram histograms quantile measurement deltas bins columns verdicts alerting words
    decoding          otlp sealed wire points intervals latency_points point_columns fields distribution spans
                      span_shapes worst_spans
    folding           rollup streams precedence admission
    windowing         windows latencies events coverage fleet rolling plane recent trail
    judging           evaluate track track_windows burning burn_alert trouble percentiles drift drift_watch
                      drift_alert usual mix cause evidence quiet service_trouble share_trouble saturation gpu_trouble
                      certified_trouble synthetic_load trouble_alert lasting policy
    storage           database* file_engine* revisions* sqlite_file* stacks* read_only* commit* recall* figures*
                      drift_past* retention* journal* leader* sql_views ddl* partitions* upsert* rows causes*
                      evidence_past* certificates*
    keeping           store* group* ledger* tallies upkeep* reader* worst
    doors             address connection* listener* gate tls* post* rpc* body intake* reply
    telling           notice notify* receivers* webhook notified*
    ticking           ticks* drifting* attributing* certifying*
    replaying         replay replay_past* replay_report replay_cli* whatif
    clickhouse        tables questions percentile_view burn_views definitions engine* difference blocks relations
                      promises mirror* mirror_cli*
    pages             view page charts standing alert_lines history* pictures
                      filters drill whatif_lines
    answering         status exposition samples selfmetrics readiness desk* service* questions* asked answers
                      reads* ondemand* hindsight* whatif_json
    the start         options running* cli*

Beside them `migrations` holds the older revisions of the tables, and `pages` has what the page is drawn with.
What can go wrong is drawn in `errors`.
"""
