"""What is measured: the one table of names, units, kinds and attributes (DESIGN 4.3).

Every other room takes a name from here; `tests/test_structure.py` holds that none is typed elsewhere. A metric is
written once by its OpenTelemetry name; its Prometheus and SQL names are derived by the rules of the OTel-Prometheus
compatibility specification (dots to underscores, unit suffix, `_total` on counters), or stand beside it where the
rule would give another name than users know. GenAI names are our own constants: the upstream ones moved to a new
repository and the old package marks them deprecated.
"""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
UNIT_SUFFIX = {"s": "_seconds", "By": "_bytes", "W": "_watts", "Cel": "_celsius", "J": "_joules"}

# Attribute and resource keys.
SERVICE_NAME = "service.name"
SERVICE_VERSION = "service.version"
SERVICE_INSTANCE = "service.instance.id"
ENVIRONMENT = "deployment.environment.name"
SOURCE = "firsttoken.source"
OPERATION = "gen_ai.operation.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  a kind of token of a language model, no secret
LATENCY_TTFT = "gen_ai.latency.time_to_first_token"
LATENCY_TPOT = "gen_ai.latency.time_per_output_token"
LATENCY_E2E = "gen_ai.latency.e2e"
LATENCY_QUEUE = "gen_ai.latency.time_in_queue"
ERROR_TYPE = "error.type"
OBJECTIVE = "firsttoken.objective"
OBJECTIVE_HASH = "firsttoken.objective_hash"
RESULT = "firsttoken.result"
OUTCOME = "firsttoken.outcome"
STREAM = "firsttoken.stream"
CLASS = "firsttoken.class"
SIGNAL = "firsttoken.signal"
DIALECT = "firsttoken.dialect"
REQUEST_ID = "firsttoken.request_id"
TIME_TO_FIRST_ANSWER = "firsttoken.time_to_first_answer"
TOKEN_COUNT_SOURCE = "firsttoken.token_count_source"  # noqa: S105  where a count comes from, no secret
LONGEST_GAP = "firsttoken.longest_gap"
KV_AT_ARRIVAL = "firsttoken.kv_cache.occupancy"
KV_MAX = "firsttoken.kv_cache.occupancy.max"
REASON = "firsttoken.reason"
VERDICT = "firsttoken.queue_guard.verdict"
PREDICTED_TTFT = "firsttoken.queue_guard.predicted_ttft"
DRIFT_KIND = "firsttoken.drift_kind"
PROMPT_TOKENS = "firsttoken.prompt_tokens"
RANK = "rank"
HW_ID, HW_NAME, HW_MODEL, HW_PARENT = "hw.id", "hw.name", "hw.model", "hw.parent"
GPU_INSTANCE = "hw.gpu.instance"
HARDWARE = (HW_ID, HW_NAME, HW_MODEL, HW_PARENT, GPU_INSTANCE)

# Prometheus label of each attribute; `service` and `model` would collide with Kubernetes target labels.
LABELS = {
    SERVICE_NAME: "service_name",
    REQUEST_MODEL: "model_name",
    ENVIRONMENT: "environment",
    OBJECTIVE: "objective",
    OBJECTIVE_HASH: "objective_hash",
    RESULT: "result",
    OUTCOME: "outcome",
    SIGNAL: "signal",
    TOKEN_TYPE: "type",
    CLASS: "class",
    REASON: "reason",
    VERDICT: "verdict",
    DIALECT: "dialect",
    SOURCE: "source",
    RANK: "rank",
    DRIFT_KIND: "kind",
    PROMPT_TOKENS: "prompt_tokens",
    **{key: key.replace(".", "_") for key in (ERROR_TYPE, *HARDWARE)},
}

SERVICE_LABEL, MODEL_LABEL, ENVIRONMENT_LABEL = LABELS[SERVICE_NAME], LABELS[REQUEST_MODEL], LABELS[ENVIRONMENT]

# Values with a meaning.
GOOD, BAD = "good", "bad"
OUTCOMES = ("ok", "no_output", "cancelled", "error", "rejected", "quota", "timeout", "client_error")
SOURCES = ("proxy", "middleware", "engine", "otel")
SYNTHETIC_CLASS = "synthetic"
CLASS_HEADER = "x-firsttoken-class"  # the usual name of the one that a request's class is read from
UNKNOWN_MODEL, OTHER_MODEL, ALL_MODELS = "unknown", "other", "*"
DRIFT_OF_SERVER, DRIFT_OF_MIX = "server", "mix"
PROMPT_EDGES_TOKENS = (256, 1024, 4096, 16384)
PROMPT_STRATA = ("to_256", "to_1k", "to_4k", "to_16k", "over_16k")
"""Classes of prompt lengths: up to each of the edges, that included, and beyond the last."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One instrument: OTel name, UCUM unit, kind and the attribute keys beyond service, model and environment."""

    name: str
    unit: str
    kind: Kind
    description: str
    attributes: tuple[str, ...] = ()
    prometheus_name: str = ""
    sql_name: str = ""

    @property
    def prometheus(self) -> str:
        """The name on a Prometheus page: of the samples of a counter or gauge, of the family of a histogram."""
        if self.prometheus_name:
            return self.prometheus_name
        base = self.name.replace(".", "_")
        suffix = UNIT_SUFFIX.get(self.unit, "")
        if self.unit == "1" and self.kind == "gauge" and not base.endswith("_ratio"):
            suffix = "_ratio"
        if not base.endswith(suffix):
            base += suffix
        return f"{base}_total" if self.kind == "counter" else base

    @property
    def sql(self) -> str:
        """The name in the `signal` and `name` columns of the collector's tables."""
        return self.sql_name or self.name.removeprefix("firsttoken.").replace(".", "_")

    @property
    def labels(self) -> tuple[str, ...]:
        """Prometheus labels beyond service, model and environment."""
        return tuple(LABELS[key] for key in self.attributes)


TTFT = Metric(
    "gen_ai.server.time_to_first_token",
    "s",
    "histogram",
    "Time from the whole request held to the first token event of a streamed answer.",
    sql_name="ttft",
)
TPOT = Metric(
    "gen_ai.server.time_per_output_token",
    "s",
    "histogram",
    "Mean time of each output token after the first of one request.",
    sql_name="tpot",
)
E2E = Metric(
    "gen_ai.server.request.duration",
    "s",
    "histogram",
    "Time from the whole request held to the end of the answer.",
    sql_name="e2e",
)
TTFT_BY_PROMPT = Metric(
    "firsttoken.time_to_first_token.by_prompt",
    "s",
    "histogram",
    "The time to first token of requests whose prompt tokens the server counted, by how many there were.",
    (PROMPT_TOKENS,),
)
SLO_EVENTS = Metric(
    "firsttoken.slo.events",
    "{event}",
    "counter",
    "Good and bad events of each objective, judged at the objective's own threshold and deadline.",
    (OBJECTIVE, OBJECTIVE_HASH, RESULT),
)
CENSORED = Metric(
    "firsttoken.censored", "s", "histogram", "Waits of requests that ended past a deadline without a value.", (SIGNAL,)
)
REQUESTS = Metric("firsttoken.requests", "{request}", "counter", "Admitted requests by outcome.", (OUTCOME, CLASS))
ABANDONED = Metric("firsttoken.requests.abandoned", "{request}", "counter", "Left by their client before any token.")
BROKEN_STREAMS = Metric(
    "firsttoken.requests.broken", "{request}", "counter", "Streams that began and ended in an error."
)
IN_FLIGHT = Metric("firsttoken.requests.in_flight", "{request}", "gauge", "Requests admitted and not ended.")
WAITING_FIRST_TOKEN = Metric(
    "firsttoken.requests.waiting_first_token", "{request}", "gauge", "Streaming requests without a first token yet."
)
OLDEST_AGE = Metric("firsttoken.requests.oldest_age", "s", "gauge", "Age of the oldest stream without a token, or 0.")
OVERDUE = Metric(
    "firsttoken.requests.overdue", "{request}", "gauge", "Requests past a deadline and without a value yet.", (SIGNAL,)
)
LAST_TOKEN_AGE = Metric(
    "firsttoken.last_token_age",
    "s",
    "gauge",
    "While requests are in flight: time since the later of the last token event and the moment in-flight left 0.",
)
TTFT_PREDICTED = Metric(
    "firsttoken.time_to_first_token.predicted", "s", "gauge", "TTFT of a usual request that came now, by what waits."
)
TTFT_PREDICTION_ERROR = Metric(
    "firsttoken.time_to_first_token.prediction_error", "s", "histogram", "How far off it was, of streams that queued."
)
GUARDED = Metric(
    "firsttoken.queue_guard.requests", "{request}", "counter",
    "Streams by what the queue guard said of their first token, and whether it came in time.", (VERDICT, RESULT),
)  # fmt: skip
HEARTBEAT = Metric("firsttoken.heartbeat", "1", "counter", "One a second that the sidecar has lived.")
ENGINE_RUNNING = Metric("firsttoken.engine.running", "{request}", "gauge", "Requests the engine is running.")
ENGINE_WAITING = Metric("firsttoken.engine.waiting", "{request}", "gauge", "Requests the engine holds in its queue.")
ENGINE_PREEMPTIONS = Metric("firsttoken.engine.preemptions", "{preemption}", "counter", "Preemptions in the engine.")
KV_OCCUPANCY = Metric(
    "firsttoken.kv_cache.occupancy", "1", "gauge", "Share of KV blocks or tokens pinned by running requests, 0 to 1.",
    (RANK,),
)  # fmt: skip
KV_CAPACITY = Metric(
    "firsttoken.kv_cache.capacity",
    "{token}",
    "gauge",
    "Tokens the KV cache can hold.",
    (RANK,),
    prometheus_name="firsttoken_kv_cache_capacity_tokens",
)
PREFIX_HIT_RATIO = Metric(
    "firsttoken.prefix_cache.hit_ratio", "1", "gauge", "Share of prompt tokens found in the prefix cache."
)
TOKENS = Metric("firsttoken.tokens", "{token}", "counter", "Tokens of ended requests, by type.", (TOKEN_TYPE,))

WIRE_METRICS = (
    TTFT, TPOT, E2E, TTFT_BY_PROMPT, SLO_EVENTS, CENSORED, REQUESTS, ABANDONED, BROKEN_STREAMS, IN_FLIGHT,
    WAITING_FIRST_TOKEN, OLDEST_AGE, OVERDUE, LAST_TOKEN_AGE, TTFT_PREDICTED, TTFT_PREDICTION_ERROR, GUARDED, HEARTBEAT,
    ENGINE_RUNNING, ENGINE_WAITING, ENGINE_PREEMPTIONS, KV_OCCUPANCY, KV_CAPACITY, PREFIX_HIT_RATIO, TOKENS,
)  # fmt: skip
"""What a sidecar sends over OTLP and shows on its `/metrics`."""

LATENCY_METRICS = (TTFT, TPOT, E2E)
TTFT_STRATA = {stratum: f"{TTFT.sql}_{stratum}" for stratum in PROMPT_STRATA}
"""The `signal` in SQL of each class of prompt lengths."""

# GPUs through NVML. A MIG device has an id of its own and names its GPU as `hw.parent`. A gauge has one series a
# device, so that a store that keeps one attribute of a gauge loses none.
GPU_UTILIZATION = Metric("hw.gpu.utilization", "1", "gauge", "Time with any kernel: no measure of load.", HARDWARE)
GPU_MEMORY_USAGE = Metric("hw.gpu.memory.usage", "By", "gauge", "Allocated device memory.", HARDWARE)
GPU_MEMORY_LIMIT = Metric("hw.gpu.memory.limit", "By", "gauge", "Device memory in all.", HARDWARE)
GPU_MEMORY_UTILIZATION = Metric("hw.gpu.memory.utilization", "1", "gauge", "Allocated share of memory.", HARDWARE)
GPU_POWER = Metric("hw.gpu.power", "W", "gauge", "Power drawn.", HARDWARE)
GPU_POWER_LIMIT = Metric("hw.gpu.power.limit", "W", "gauge", "Power limit enforced.", HARDWARE)
GPU_ENERGY = Metric("hw.gpu.energy", "J", "counter", "Energy used while watched.", HARDWARE)
GPU_TEMPERATURE = Metric("hw.gpu.temperature", "Cel", "gauge", "Temperature of the chip.", HARDWARE)
GPU_THROTTLE = Metric("hw.gpu.throttle", "s", "counter", "Time with clocks held back.", (*HARDWARE, REASON))
GPU_ERRORS = Metric("hw.gpu.errors", "{error}", "counter", "ECC errors and XIDs.", (*HARDWARE, ERROR_TYPE))
GPU_LAST_XID = Metric("hw.gpu.last_xid", "{xid}", "gauge", "Number of the last XID, once there was one.", HARDWARE)
GPU_REMAPPED_ROWS = Metric("hw.gpu.remapped_rows", "{row}", "gauge", "Rows of memory remapped for good.", HARDWARE)
GPU_REMAP_PENDING = Metric("hw.gpu.row_remap.pending", "{bool}", "gauge", "1: a row waits for a reset.", HARDWARE)
GPU_REMAP_FAILED = Metric("hw.gpu.row_remap.failed", "{bool}", "gauge", "1: remapping a row has failed.", HARDWARE)
GPU_LOST = Metric("hw.gpu.lost", "{bool}", "gauge", "1: off the bus, or waits for a reset.", HARDWARE)

GPU_METRICS = (
    GPU_UTILIZATION, GPU_MEMORY_USAGE, GPU_MEMORY_LIMIT, GPU_MEMORY_UTILIZATION, GPU_POWER, GPU_POWER_LIMIT,
    GPU_ENERGY, GPU_TEMPERATURE, GPU_THROTTLE, GPU_ERRORS, GPU_LAST_XID, GPU_REMAPPED_ROWS, GPU_REMAP_PENDING,
    GPU_REMAP_FAILED, GPU_LOST,
)  # fmt: skip
BY_NAME = {metric.name: metric for metric in (*WIRE_METRICS, *GPU_METRICS)}

# Of NVIDIA's dcgm-exporter, as its list of counters has them on unless told otherwise. XID: the number of the last one.
DCGM_XID, DCGM_ROW_REMAP_FAILED = "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_ROW_REMAP_FAILURE"
DCGM_UNCORRECTABLE_ROWS = "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS"
DCGM_GPU_LABEL = "UUID"

# What a sidecar says of itself, on its own `/metrics` only.
CONFIG_RELOAD_OK = Metric(
    "firsttoken.config.last_reload_successful", "{bool}", "gauge", "1 when the last load of slo.yaml succeeded."
)
SPEC_INFO = Metric("firsttoken.spec.info", "{spec}", "gauge", "Always 1; the hash of the spec in force is a label.")

TELEMETRY_FAULTS = Metric(
    "firsttoken.telemetry.faults", "{fault}", "counter",
    "Faults of the telemetry itself, by type; none touched a response.", (REASON,),
)  # fmt: skip
UNPARSED = Metric(
    "firsttoken.unparsed", "{event}", "counter",
    "Events of answers that the dialect could not read: passed on, never guessed.", (DIALECT,),
)  # fmt: skip
EXPORT_FAILED = Metric(
    "firsttoken.export.failed", "{export}", "counter", "Exports that were not taken, and are kept and tried again.",
    (SIGNAL, REASON),
)  # fmt: skip
EXPORT_DROPPED = Metric(
    "firsttoken.export.dropped", "{item}", "counter", "Spans and data points that were given up before delivery.",
    (SIGNAL, REASON),
)  # fmt: skip
SCRAPES_FAILED = Metric(
    "firsttoken.scrape.failed", "{scrape}", "counter", "Polls of the engine's metrics page without a usable answer.",
    (REASON,),
)  # fmt: skip
USAGE_ASKED = Metric(
    "firsttoken.usage.asked",
    "{request}",
    "counter",
    "Requests that were also asked for their token count, by what came: hidden, absent, shown, refused, packed.",
    (REASON,),
)
GPU_COLLECTOR_UP = Metric("firsttoken.gpu.collector.up", "{bool}", "gauge", "1 while GPUs are read, else 0.")

WORKERS = Metric("firsttoken.workers", "{worker}", "gauge", "Worker processes at work, of `--workers`.")
WORKER_DEATHS = Metric("firsttoken.worker.deaths", "{worker}", "counter", "Worker processes that ended unasked.")

SIDECAR_METRICS = (
    CONFIG_RELOAD_OK, SPEC_INFO, TELEMETRY_FAULTS, UNPARSED, EXPORT_FAILED, EXPORT_DROPPED, SCRAPES_FAILED,
    USAGE_ASKED, GPU_COLLECTOR_UP, WORKERS, WORKER_DEATHS,
)  # fmt: skip

# What the collector computes and shows on its `/metrics`.
BURN_RATE = Metric("firsttoken.burn_rate", "{burn}", "gauge", "Bad share over the window, over the allowed bad share.")
BUDGET_REMAINING = Metric(
    "firsttoken.error_budget_remaining", "1", "gauge", "Share of the period's error budget left; below 0 is overspent."
)
BUDGET_EXHAUSTED_IN = Metric(
    "firsttoken.budget_exhausted_in", "s", "gauge", "Time to an empty error budget at the last hour's rate of bad."
)
LATENCY = Metric("firsttoken.latency", "s", "gauge", "Latency quantile over the window, from merged histograms.")
COVERAGE = Metric("firsttoken.coverage", "1", "gauge", "Share of the window from which telemetry is known.")
LATENCY_DRIFT = Metric(
    "firsttoken.latency_drift",
    "1",
    "gauge",
    "By how much latency has shifted against its own past, 0.25: a quarter longer; no sample without a shift.",
    (SIGNAL, SOURCE, DRIFT_KIND),
)

# What the collector says of itself.
INTAKE_BODIES = Metric("firsttoken.collector.bodies", "{body}", "counter", "OTLP bodies acknowledged after commit.")
INTAKE_REPEATED = Metric(
    "firsttoken.collector.repeated", "{body}", "counter", "OTLP bodies that came again and were counted once."
)
INTAKE_DROPPED = Metric(
    "firsttoken.collector.dropped", "{item}", "counter", "Spans and data points not counted, by reason.", (REASON,)
)
INTAKE_REFUSED = Metric(
    "firsttoken.collector.refused", "{body}", "counter", "OTLP bodies answered with an error, by status.", (REASON,)
)
INTAKE_POINTS = Metric("firsttoken.collector.points", "{point}", "counter", "Data points counted.")
INTAKE_SPANS = Metric("firsttoken.collector.spans", "{span}", "counter", "Latencies read from spans and counted.")
INTAKE_WAITING = Metric("firsttoken.collector.waiting", "{body}", "gauge", "Bodies and other writes not yet committed.")
INTAKE_LAG = Metric("firsttoken.collector.lag", "s", "gauge", "Age of the newest event time that was counted.")
DATABASE_SIZE = Metric("firsttoken.collector.database_size", "By", "gauge", "Size of the database, without its log.")
DATABASE_WAL = Metric("firsttoken.collector.database_wal_size", "By", "gauge", "Size of SQLite's write-ahead log.")
COMMITS = Metric("firsttoken.collector.commits", "{commit}", "counter", "Write transactions committed.")
COMMIT_FAILURES = Metric(
    "firsttoken.collector.commit_failures", "{commit}", "counter", "Write transactions that failed and were undone."
)
COMMIT_TIME = Metric("firsttoken.collector.commit_time", "s", "counter", "Time spent in committed transactions.")
TICKS = Metric("firsttoken.collector.ticks", "{tick}", "counter", "Evaluations made.")
TICK_FAILURES = Metric("firsttoken.collector.tick_failures", "{tick}", "counter", "Evaluations that failed.")
TICK_TIME = Metric("firsttoken.collector.tick_time", "s", "counter", "Time spent in evaluations.")
TICK_DURATION = Metric("firsttoken.collector.tick_duration", "s", "gauge", "Length of the last evaluation.")
TICK_UNSAVED = Metric(
    "firsttoken.collector.unsaved", "{tick}", "counter", "Evaluations whose figures the database did not take."
)
LEADER = Metric(
    "firsttoken.collector.leader", "{bool}", "gauge", "1 when this collector, of all on its database, evaluates."
)
EVALUATION_AGE = Metric("firsttoken.collector.evaluation_age", "s", "gauge", "Age of the last evaluation.")
NOTIFIED = Metric("firsttoken.collector.notified", "{alert}", "counter", "Alerts or groups that receivers took.")
NOTIFY_FAILURES = Metric(
    "firsttoken.collector.notify_failures", "{delivery}", "counter", "Deliveries that a receiver did not take."
)
RECEIVER_UP = Metric("firsttoken.collector.receiver_up", "{bool}", "gauge", "1 while a receiver takes what it is told.")

COLLECTOR_METRICS = (
    BURN_RATE, BUDGET_REMAINING, BUDGET_EXHAUSTED_IN, LATENCY, COVERAGE, LATENCY_DRIFT, INTAKE_BODIES, INTAKE_REPEATED,
    INTAKE_DROPPED, INTAKE_REFUSED, INTAKE_POINTS, INTAKE_SPANS, INTAKE_WAITING, INTAKE_LAG, DATABASE_SIZE,
    DATABASE_WAL, COMMITS, COMMIT_FAILURES, COMMIT_TIME, TICKS, TICK_FAILURES, TICK_TIME, TICK_DURATION, TICK_UNSAVED,
    LEADER, EVALUATION_AGE, NOTIFIED, NOTIFY_FAILURES, RECEIVER_UP,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Signal:
    """One kind of promise that an objective can make."""

    name: str
    title: str
    threshold: Literal["duration", "share", "count", "none"]
    unit: str
    alert: str
    notify: Literal["page", "ticket"]
    metric: Metric | None = None


SIGNALS = {
    signal.name: signal
    for signal in (
        Signal("ttft", "time to first token", "duration", "s", "LLMTTFTBudgetBurn", "page", TTFT),
        Signal("tpot", "time per output token", "duration", "s", "LLMTPOTBudgetBurn", "page", TPOT),
        Signal("e2e", "request duration", "duration", "s", "LLME2EBudgetBurn", "page", E2E),
        Signal("availability", "availability", "none", "", "LLMAvailabilityBudgetBurn", "page"),
        Signal("kv_occupancy", "KV-cache occupancy", "share", "1", "LLMKVCacheBudgetBurn", "ticket", KV_OCCUPANCY),
        Signal("queue", "waiting requests", "count", "{request}", "LLMQueueBudgetBurn", "ticket", ENGINE_WAITING),
    )
}

# Classic bucket edges of latency histograms on /metrics; each objective's own threshold joins them as an exact edge.
LATENCY_BUCKETS_S = (
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0,
    7.5, 10.0, 20.0, 40.0, 80.0, 160.0,
)  # fmt: skip
