"""The collector's limits and timeouts as people read them: room, name, and what happens there (docs/limits.md)."""

LIMITS: dict[str, dict[str, str]] = {
    "connection": {
        "HEAD_S": "a connection without a whole request head is closed after it",
        "MAX_OPEN": "open HTTP connections; one more is closed at once",
    },
    "listener": {
        "MAX_CONNECTIONS": "HTTP connections that are served; one more is answered 503",
        "KEEP_ALIVE_S": "an idle HTTP connection is closed after it",
        "BACKLOG": "connections that the system holds until they are accepted",
        "MAX_FILES": "open files, asked of the system; fewer admit fewer connections",
    },
    "tls": {"MAX_HANDSHAKES": "TLS handshakes of HTTP under way; one more is closed at once"},
    "rpc": {
        "MAX_MESSAGE_BYTES": "a longer gRPC message, or one that unpacks to more: RESOURCE_EXHAUSTED",
        "MAX_READING": "gRPC messages that are read at a time; others wait",
        "MAX_CALLS": "gRPC calls in hand; one more is answered UNAVAILABLE with RetryInfo",
        "MAX_STREAMS": "gRPC calls of one connection; others wait at the sender",
        "MAX_OPEN": "open gRPC connections; one more is closed at once",
        "IDLE_S": "an idle gRPC connection is closed after it",
        "HANDSHAKE_S": "a gRPC connection must be made by then",
        "PING_S": "a silent gRPC peer is asked whether it is there",
    },
    "spec_watch": {"WATCH_S": "`--watch-slo` looks this often; a change counts when two looks saw the same"},
    "engine": {"MAX_BLOCK_ROWS": "rows of one insert into ClickHouse: one block, there as a whole or not at all"},
    "mirror_cli": {"MAX_ORIGIN_LETTERS": "letters of the name that a database has in ClickHouse"},
    "body": {
        "MAX_BODY_BYTES": "an OTLP/HTTP body beyond it is answered 413",
        "MAX_UNPACKED_BYTES": "a protobuf body that unpacks to more is answered 413",
        "MAX_JSON_BYTES": "a JSON body that unpacks to more is answered 413",
        "STEP_BYTES": "unpacked at a time; others have their turn between",
    },
    "intake": {
        "BODY_TIMEOUT_S": "a body must be whole by then; else 408, DEADLINE_EXCEEDED by gRPC",
        "ROOM_BYTES": "bodies in hand at a time; for more, the longest still coming is answered 503",
        "INLINE_BYTES": "a longer body is read beside the event loop, one at a time",
        "INLINE_JSON_BYTES": "the same of JSON",
    },
    "post": {"DRAIN_BYTES": "of a refused body, let in so that its sender reads why"},
    "reply": {"MESSAGE_BYTES": "of the words of an answer; the rest is cut"},
    "wire": {
        "MAX_ATTRIBUTES": "attributes of a resource, span or point that are read",
        "MAX_NAME": "characters kept of a key or value; the rest is cut",
        "MAX_KEPT_BYTES": "longer attributes of a point are read anew each time; of a resource, four times as long",
        "MAX_REASONS": "different faults told of one body; the rest is told as further faults",
        "MAX_REASON": "characters told of a fault",
    },
    "points": {
        "MAX_POINTS": "points of ours in one body; metrics beyond are refused by name",
        "MAX_UNIT": "characters of a wrong unit that its sender is told",
    },
    "distribution": {"MAX_BUCKETS": "buckets of a histogram; a point with more is refused by name"},
    "spans": {
        "MAX_COLUMNS": "models times latencies in the spans of one sender; the rest is `other`",
        "MAX_SHAPES": "shapes remembered of spans of one length; what fits none is read alone",
        "MAX_LENGTHS": "lengths of spans of which shapes are remembered",
        "MAX_SHAPED_BYTES": "a longer span is read alone",
    },
    "measurement": {
        "MAX_VALUE": "a larger figure is refused by name",
        "MAX_COUNT": "a point of more events or values is refused by name",
    },
    "rollup": {
        "FUTURE_S": "a point further ahead of now is refused by name",
        "MAX_STREAMS": "cumulative streams remembered; points of further ones are refused by name",
    },
    "admission": {
        "MAX_LAYOUTS": "different sets of bucket bounds; histograms of further ones are refused by name",
        "BUCKETS_OF_ONE": "buckets that one of `--max-series` may have; histograms of more count as several, of "
        "another layout as another",
        "MAX_OTHERS": "series of model `other`, beyond `--max-series`; what comes for further ones is refused by name",
        "MAX_SERVICES": "services; what comes from further ones is refused by name",
    },
    "store": {
        "MAX_WAITING": "bodies that wait for their commit; one more is answered 503 with Retry-After",
        "MAX_GROUP": "bodies in one commit",
        "GATHER_S": "after a group of several bodies the next one gathers so long at most",
        "PATIENCE_S": "a body that is not committed by then is answered 503 with Retry-After",
        "CLOSE_S": "what waits at the end of the process must be committed by then",
    },
    "tallies": {"MAX_REASONS": "reasons why points were dropped, on /metrics; further ones count as other"},
    "database": {
        "CONNECT_TIMEOUT_S": "PostgreSQL must take a connection by then",
        "COMMAND_TIMEOUT_S": "and must have done one statement by then",
        "IDLE_IN_TRANSACTION_S": "PostgreSQL ends a transaction in which a collector asks nothing for so long",
        "BUSY_TIMEOUT_S": "SQLite's file may be locked by another writer for so long",
        "POOL_SIZE": "connections of one collector to its database, beside one for the lease",
    },
    "sqlite_file": {"WARN_BYTES": "a log of SQLite that a reader keeps longer than that is warned of"},
    "retention": {
        "ROWS_A_FOLD": "rows that one transaction folds, or those of one step where they are more",
        "ROWS_A_DELETE": "rows that one transaction drops, likewise",
    },
    "figures": {"MAX_EVERY_TICK": "rows of figures in a tick; of more, only the first tick of each minute is kept"},
    "upkeep": {"SWEEP_S": "old rows are folded and dropped this often"},
    "leader": {
        "LEASE_S": "a collector that does not renew its lease evaluates no more after it, and another takes over"
    },
    "journal": {"KEPT_S": "a collector on a shared database that was away for longer reads everything anew"},
    "deltas": {"MAX_KEPT": "series whose key is kept at hand; with one more all are looked for anew"},
    "latency_points": {"MAX_KEPT": "attributes of points whose meaning is kept; with one more all are read anew"},
    "group": {"POINTS_AT_ONCE": "points that are read in one go; of more, others have their turn between"},
    "latencies": {"MAX_KEPT": "series whose place is kept at hand; that of more is looked for each time"},
    "fleet": {
        "MAX_INSTANCES": "instances of a service remembered; the longest silent is forgotten",
        "FRESH_S": "a gauge says nothing of now once it is older",
    },
    "recent": {
        "MAX_TRAILS": "counters and gauges whose last minutes are held for alerts on requests, engines and GPUs; "
        "further ones wait until others fall silent",
    },
    "trouble_alert": {"MAX_NAMED": "instances or GPUs that an alert names; the rest are counted"},
    "drift": {"MAX_CLIMB_MINUTES": "minutes of a climb that its size is told by"},
    "drift_watch": {"MAX_WATCHED": "latencies watched for drift, those with the most requests"},
    "cause": {"MOST_APART": "instances looked at one by one for a cause that all together do not show"},
    "attributing": {
        "MAX_AT_ONCE": "alerts whose causes are sought at once, the most urgent first; the others wait a tick",
        "MAX_LENGTH_S": "of an alert's short window that is looked at for its cause, the latest",
        "MAX_LOOK_BACK_S": "how far back a time is sought to compare with, in which nothing burned",
        "WAIT_S": "a tick waits for the cause of an alert that begins by then, and by half a tick",
    },
    "evidence_past": {
        "MAX_ROWS": "rows of two gauges that are read for a cause; of more their ends are not known",
        "MAX_SERIES": "latencies of one service's instances that are looked at for a cause",
    },
    "ticks": {"MAX_UNSAVED": "transitions of alerts that wait for a database that is away; the oldest are lost"},
    "notify": {
        "MAX_NOTICES": "alerts that anybody is told of, the most urgent first",
        "RETRY_LAST_S": "longest pause before a receiver that failed is told again",
        "REFUSED_PAUSE_S": "the pause after an answer of the 4xx: somebody must mend something",
    },
    "receivers": {
        "RESEND_S": "a firing alert is told again this often",
        "FIRES_FOR_S": "Alertmanager ends an alert that is not told again within it",
        "TIMEOUT_S": "a receiver of alerts must take the connection by then",
        "ANSWER_S": "and must have answered by then",
        "BATCH": "alerts in one request to Alertmanager",
    },
    "webhook": {"MAX_ALERTS": "alerts in one payload of the webhook; `truncatedAlerts` says how many more"},
    "running": {"LAST_WORD_S": "receivers are told the last word at the end of the process by then"},
    "service": {"MAX_VIEWERS": "pages that are told of each tick; one more is answered 503"},
    "readiness": {"LATE_TICKS": "ticks after which a missing evaluation makes /readyz answer 503"},
    "history": {
        "MAX_ENDED": "ended alerts on the page",
        "MAX_ROWS": "rows that charts are made from; with many models they reach back less far",
    },
    "charts": {
        "MAX_LINES": "lines in one chart, the highest",
        "MAX_POINTS": "points of one line; a peak is never left out",
        "MAX_POINTS_LARGE": "the same of the chart of one objective's own page",
    },
    "filters": {
        "MAX_CHOICES": "models to choose from on the page",
        "MAX_TEXT": "characters of a filter in the page's URL; the rest is cut",
    },
    "drill": {
        "MAX_WORST": "worst requests on the page of an objective",
        "MAX_SAMPLES": "values of its chart that stand there as a table",
    },
    "status": {"MAX_MODELS_TOLD": "models named of a service without an objective; the rest are counted"},
    "desk": {"MAX_PAGES": "choices of objectives of which the page is kept until the next tick"},
    "hindsight": {
        "KEPT_S": "what another target would have cost is answered anew after it",
        "MAX_KEPT": "such answers that are kept; of more, the oldest goes",
        "MAX_ASKED": "such questions that run or wait at once; beyond it 503, ask again later",
        "MAX_TEXT": "characters of a percentile or a threshold in the page's URL; the rest is cut",
    },
    "worst_spans": {
        "MAX_WORST": "spans of one sender in one body that are opened for each latency, and of those that failed",
        "MAX_HIGHEST": "foreign spans that are no longer than so many of their hour are not opened",
        "MAX_FLOORS": "hours, services, models and latencies of which that is remembered",
    },
    "worst": {
        "MAX_OF_HOUR": "requests kept in memory of each hour, service, model and latency: the worst",
        "MAX_LISTS": "such lists; beyond it the oldest hour is given up",
        "KEPT_S": "and what is older is given up",
    },
    "view": {
        "MAX_ALERTS": "alerts told on the page; the rest are counted",
        "MAX_MODELS": "models of one objective on the page, those in trouble first; the rest are counted",
        "MAX_DRIFTS": "latencies that shifted, told on the page; those that shifted most",
        "MAX_NAMES": "names in one sentence of the page",
    },
    "reader": {
        "MAX_READERS": "questions asked of the database at a time; others wait",
        "MAX_QUESTIONS": "questions in hand; one more is answered 503 with Retry-After",
        "PATIENCE_S": "a question is answered by then, or broken off; as long it may wait for its turn",
    },
    "asked": {
        "MAX_LIMIT": "rows of one answer; more is asked for page by page",
        "MAX_MOMENTS": "steps of one question; more are answered 400",
        "MAX_SPAN_S": "the longest step or window that may be asked for",
        "MAX_CURSOR_CHARS": "characters of `next`",
    },
    "reads": {"MAX_PRESENT": "alerts that are pending or firing in one answer"},
}

NO_LIMITS = {
    "address": {"MAX_PORT"},
    "distribution": {"MAX_LOG2_S", "MAX_SHIFT", "MAX_ZERO_S"},
    "histogram": {"MAX_SCALE"},
    "options": {"MAX_TICK_S"},
    "rolling": {"MAX_ASKED", "MAX_CELLS", "MAX_PIECES", "MAX_STRETCHES"},
}
"""Constants called MAX that nobody meets: edges of a format, or of our own arithmetic."""
