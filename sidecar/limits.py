"""Every limit and time-out of the sidecar, named once, with its unit.

A limit that a flag can change is only the default of that flag here; the rest are fixed. What happens at each limit
stands beside it, so that nobody meets one without finding its reason.
"""

# The client's side of the proxy.
MAX_HEAD_BYTES = 64 << 10  # a request head beyond it is answered 431
MAX_BODY_BYTES = 1 << 30  # a request body beyond it is answered 413; the server behind usually refuses far less
MAX_CONNECTIONS = 20_000  # clients at a time; one more is closed at once
MAX_FILES = 46_144  # two a client, one a handshake or a leftover, and some: asked of the system; fewer admit fewer
FEW_FILES = 4096  # fewer, and the log says how many requests that lets through
TLS_HANDSHAKES = 4096  # clients in their TLS handshakes at a time; one more is closed at once
TLS_HANDSHAKE_S = 10.0  # a TLS handshake must be over by then
TLS_TOLD = 64  # reasons of failed handshakes in the log; each is told once
CLIENT_IDLE_S = 75.0  # a kept-alive connection without a request is closed after it
CLIENT_HEAD_S = 60.0  # a request head must be whole by then
CLIENT_STALL_S = 300.0  # a client that takes nothing of its answer, or sends nothing of its body, is given up
LINGER_S = 2.0  # after an early answer the client's remaining bytes are read and dropped this long, not reset

# The upstream's side.
MAX_RESPONSE_HEAD_BYTES = 128 << 10  # beyond it the answer is 502; so long may its trailers be, too
LAST_WORDS_BYTES = 256 << 10  # read of an answer whose connection broke under the rest of its request
CONNECT_S = 5.0  # then the client gets 504, and the outcome is `timeout`
LEFTOVERS = 1024  # answers let end at a time whose clients have left, with --on-disconnect drain; more are cancelled
LEFTOVER_S = 300.0  # one that has not ended by then is cancelled
UNIX_RETRY_S = 0.01  # a unix socket whose queue is full refuses at once: asked again so often until CONNECT_S is over
POOL_IDLE_S = 4.0  # shorter than the 5 s after which uvicorn, the commonest server here, closes an idle connection
POOL_PROBATION_S = 0.05  # an idle connection rests so long before use while a server has not shown that it keeps them
POOL_HANG_UP_S = 1.0  # a server that closes a connection sooner after its answer does so by habit
POOL_WARY_S = 60.0  # none is kept for so long then
POOL_CONNECTIONS = 512  # idle ones kept
UNSENT_BYTES = 256 << 10  # request bytes held while the connection is being made; the client is paused beyond it

# Asking the server for its token count (`--inject-usage`). Held bodies end at `dialects.LOOK_BYTES`.
USAGE_EVENT_BYTES = 16 << 10  # a longer event of a stream is no usage chunk, and is not held until it is whole
USAGE_HOLD_S = 0.05  # the event that finishes an answer waits no longer for the usage chunk behind it
USAGE_REFUSALS = 3  # requests refused before one was answered: the server is not asked again

# Telemetry.
MAX_MODELS = 100  # label values; the rest is `other`
HISTOGRAM_BUCKETS = 640  # of an exponential histogram: at scale 5, 20 octaves
SPAN_QUEUE = 8192  # ended spans waiting for export; more are dropped and counted
SPAN_BATCH = 512
INTERVAL_QUEUE = 256  # intervals of metrics waiting to be encoded; the oldest is dropped and counted
RETRY_BYTES = 8 << 20  # encoded exports of one kind waiting for an endpoint; the oldest is dropped and counted
EXPORT_TIMEOUT_S = 10.0
RETRY_FIRST_S = 1.0
RETRY_LONGEST_S = 30.0
FLUSH_S = 5.0  # the last export at shutdown gets no longer

# What requests did and is looked at together (`backlog`).
BACKLOG_S = 0.05  # what requests did is looked at so much later, or as soon as a page or an export asks for it
BACKLOG_TURN = 6  # acts of theirs looked at in one turn of the event loop: nobody waits long behind them
BACKLOG_LATE = 16  # acts that wait before those nobody waits for are a reason to look
BACKLOG_NOTES = 256  # acts that wait, those of some sixty requests; with one more all are looked at at once
BACKLOG_BYTES = 1 << 20  # of bodies that they hold on to; with one more all are looked at at once

# The queue guard (`--shed`).
GUARD_FEW = 20  # predictions of a wait that have come due; with fewer none is acted on
GUARD_WINDOW = 64  # of them, the latest, are what the next one is judged by
GUARD_MARGIN = 4.0  # a wait is refused by its margin of error as long as that is no larger a factor
GUARD_FORGET_S = 600  # what was seen of the server counts no longer
GUARD_RETRY_S = 60  # a refused client is told to come back after so long at most

# Scrape and probes.
SCRAPE_INTERVAL_S = 1.0
SCRAPE_TIMEOUT_S = 5.0
SCRAPE_BYTES = 16 << 20
STALE_INTERVALS = 3  # a sample older than so many intervals is no longer shown or exported
UNSUPPORTED_RETRY_S = 30.0  # an engine without a metrics page is asked again this seldom
MODELS_INTERVAL_S = 60.0

# The configuration.
READ_S = 10.0  # files of the configuration must be read again by then; what takes longer changes nothing
WATCH_S = 5.0  # `--watch-slo` looks at the files this often; a change counts when two looks in a row saw the same

# GPUs.
GPU_INTERVAL_S = 1.0  # NVML itself takes its samples up to a second apart
GPU_RETRY_S = 60.0  # where there is none, or one is lost, NVML is opened anew this often
GPU_LATE_NS = 2 * 10**9  # a poll that comes later than this after the last says nothing of the rest of the gap
GPU_DEVICES = 256  # GPUs and MIG devices read; 16 GPUs of 7 instances are 128
GPU_EVENT_WAIT_MS = 500  # one wait for XIDs, and so what the end of the process may have to wait for
GPU_TOLD = 256  # different lines of the log on GPUs; each is written once
GPU_CLOSE_S = 3.0  # a driver that hangs is left behind after it

# The admin server.
ADMIN_CONNECTIONS = 64
ADMIN_IDLE_S = 30.0

DRAIN_S = 30.0  # after SIGTERM, requests in flight have this long to end

# Workers (`--workers`).
MAX_WORKERS = 64
WORKER_START_S = 60  # a worker that takes no requests by then is killed, and counts as one that did not start
WORKER_TRIES = 5  # workers in a row that ended before they took requests: the whole ends
WORKER_YOUNG_S = 10.0  # one that ends younger makes the pause before the next longer, WORKER_PAUSE_S at first
WORKER_PAUSE_S = 0.1
WORKER_LONGEST_PAUSE_S = 10.0
WORKER_ANSWER_S = 1.0  # a page waits so long for a worker to tell what it counted, and then shows what it told before
WORKER_SILENT_S = 30  # one that reports nothing for so long stands still, and is killed
WORKER_UNREAD_BYTES = 1 << 20  # told to a process that does not listen; beyond it, what can wait is not told
WORKER_END_S = 5.0  # a worker has so long to end beside draining and the last export, and is killed then
