"""The tables the collector keeps (DESIGN 4.4): its product, the same on SQLite and PostgreSQL.

Every time is integer epoch seconds in UTC, every duration is seconds; an unknown value is NULL, never 0, NaN or
infinity (a CHECK on every floating column refuses them whoever writes). `environment` is '' when unset, `model` is
`*` for the figure over all models of an objective. Each table and column carries a comment: the documentation is
made from them. This room imports SQLAlchemy alone, so that generators and planners may read it.

The primary keys of everything that grows start with its time: rows are written in order of time and dropped in
order of time, so a tick touches the few pages at the end of each table however many series there are.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Double,
    Index,
    LargeBinary,
    MetaData,
    Select,
    Table,
)

from collector.schema_columns import (
    environment,
    model,
    objective,
    of_alert,
    real,
    real_or_null,
    service,
    start,
    step,
    text,
    whole,
    whole_or_null,
    whose,
)

REVISION = "0005"
"""Of these tables: what a database's `schema_version` holds when it has them."""
LARGEST = 1e308
STEPPED, BY_DAY = "step_s", "at_s"
"""How PostgreSQL cuts a table that grows (see `partitions`), by the column that decides first: what is kept by step
into tiers of steps and those by time, what is kept by moment into days."""

metadata = MetaData()
views = MetaData()
"""How the views read; what makes them is `View.question`."""


@dataclass(frozen=True, slots=True)
class View:
    """A question that the database keeps under a name; `table` is how it reads, with a comment for each column."""

    table: Table
    question: Select[Any]


def view(name: str, comment: str, question: Select[Any], **comments: str) -> View:
    """The view of a question. A column that is taken over as it is keeps its comment; `comments` are of the others."""
    columns = [
        Column(column.name, column.type, comment=comments.get(column.name) or getattr(column, "comment", None))
        for column in question.selected_columns
    ]
    return View(Table(name, views, *columns, comment=comment), question)


def _table(
    name: str,
    comment: str,
    *columns: Column[int] | Column[float] | Column[str] | Column[bytes],
    cut: str | None = None,
) -> Table:
    """A table clustered by its primary key, whose floating columns refuse NaN and infinity; `cut` where it grows."""
    finite = [
        CheckConstraint(f'"{column.name}" BETWEEN -{LARGEST} AND {LARGEST}', name=f"{name}_{column.name}_finite")
        for column in columns
        if isinstance(column.type, Double)
    ]
    partition = None if cut is None else f"RANGE ({cut})"
    return Table(
        name,
        metadata,
        *columns,
        *finite,
        comment=comment,
        info={"cut": cut},
        sqlite_with_rowid=False,
        postgresql_partition_by=partition,
    )


percentile = _table(
    "percentile",
    "Latency percentiles of a rolling window, as of at_s; from merged histograms, never averaged.",
    whole("at_s", "Moment of the evaluation; the window ends here.", key=True),
    *whose(),
    text("signal", "ttft, tpot, e2e or another latency of the wire.", key=True),
    text("source", "Who measured: proxy, middleware, engine or otel.", key=True),
    whole("window_s", "Length of the window.", key=True),
    whole("count", "Requests of the window that have a value."),
    whole("censored", "Requests of the window past a deadline and without a value."),
    real_or_null("p50", "Median; NULL when it falls among the censored or nothing was seen."),
    real_or_null("p90", "90th percentile, by the same rule."),
    real_or_null("p95", "95th percentile, by the same rule."),
    real_or_null("p99", "99th percentile, by the same rule."),
    real_or_null("p999", "99.9th percentile, by the same rule."),
    real_or_null("max", "Largest value of the window as far as its source knows it."),
    real_or_null("at_least", "What every NULL quantile above is known to exceed; NULL when none is censored."),
    real_or_null("rel_error", "Greatest relative error of the quantiles (0.011 is 1.1 %)."),
    real("coverage", "Share of the window from which telemetry is known, 0 to 1."),
    cut=BY_DAY,
)

burn_rate = _table(
    "burn_rate",
    "Burn rate of each objective over each rolling window, as of at_s.",
    whole("at_s", "Moment of the evaluation; the window ends here.", key=True),
    *whose(),
    objective(),
    whole("window_s", "Length of the window.", key=True),
    whole("good", "Good events of the window."),
    whole("bad", "Bad events of the window."),
    real_or_null("burn", "(bad / (good + bad)) / (1 - target); NULL without events."),
    real("coverage", "Share of the window from which telemetry is known, 0 to 1."),
    text("basis", "counts: judged at the source; histogram: read off the histogram at the threshold."),
    whole("unsure", "Events of a histogram basis that lie in the bucket which the threshold cuts; else 0."),
    cut=BY_DAY,
)

budget = _table(
    "budget",
    "Error budget of each objective over its own period, as of at_s.",
    whole("at_s", "Moment of the evaluation; the period ends here.", key=True),
    *whose(),
    objective(),
    whole("good", "Good events of the period."),
    whole("bad", "Bad events of the period."),
    real("allowance", "Bad events the period may have: (1 - target) x events of a whole period."),
    real("remaining", "1 - bad / allowance; below 0 is overspent; 1 without events."),
    real_or_null("exhausted_in_s", "Time to an empty budget at the last hour's rate; NULL at rate 0, 0 once spent."),
    real("coverage", "Share of the period from which telemetry is known, 0 to 1."),
    text("basis", "counts: judged at the source; histogram: read off the histogram at the threshold."),
    cut=BY_DAY,
)

drift = _table(
    "drift",
    "Latencies whose p95 shifted against its own past at that time of day, from when to when.",
    whole("since_s", "When the shift began.", key=True),
    *whose(),
    text("signal", "ttft, tpot or e2e.", key=True),
    text("source", "Who measured: proxy, middleware, engine or otel.", key=True),
    real("effect", "Relative change against what is usual then: 0.25 is a quarter longer."),
    real("before_s", "What was usual when it began."),
    real("after_s", "What became of that."),
    whole("count", "Requests that it was seen in."),
    text("kind", "Whose doing: server, mix (of prompt lengths), or unknown."),
    whole_or_null("until_s", "When it had ended, or was the new normal; NULL while it lasts."),
)

alert = _table(
    "alert",
    "The present state of each alert that ever left ok.",
    *of_alert(
        "Alert name, as LLMTTFTBudgetBurn.",
        "What tells alerts of one name apart: a burn's tier (fast, medium, slow, long or a name given), the share or "
        "the budget left from which it is told (90%), a drift's signal, partial for lost instances; '' where there is "
        "one.",
    ),
    text(
        "state",
        "pending (a burn that a page holds back or of which the short window is fine, a state that is too young), "
        "firing or resolved.",
    ),
    whole("since_s", "When it entered this state."),
    text("severity", "critical, warning or info."),
    text("notify", "page, ticket or none."),
    whole_or_null("fired_s", "When the last firing began; NULL when it never fired."),
    text("labels", "What receivers are told as labels, as a JSON object."),
    text("annotations", "What receivers are told in words, as a JSON object."),
)

alert_event = _table(
    "alert_event",
    "Every transition of every alert.",
    whole("at_s", "When the transition happened.", key=True),
    *of_alert("Alert name.", "As in alert."),
    text("state", "State entered: pending, firing or resolved.", key=True),
    whole_or_null("fired_s", "When the firing began that this belongs to; NULL when it never fired."),
    text("labels", "What receivers were told as labels, as a JSON object."),
    text("annotations", "What was said of it then, as a JSON object."),
)

alert_cause = _table(
    "alert_cause",
    "Why each burn alert pended or fired, as far as the evidence tells: one row for each time that it did, kept up to "
    "date while it lasts. The same in words is the annotation cause of alert and alert_event.",
    whole("since_s", "When the alert left ok.", key=True),
    *of_alert("Alert name.", "Burn tier."),
    whole("at_s", "Moment that the evidence reaches to."),
    text("kind", "What burns the budget, in one word: decode_slower, errors ... (docs/numbers.md), or unknown."),
    real("confidence", "How sure that is, 0 to 1; of unknown, how sure the nearest was."),
    text("instance", "The one instance that it is alone with; '' when it is of all together."),
    text("evidence", "What speaks for it, as a JSON array of sentences."),
    whole("length_s", "Length of the stretch of time before at_s that was looked at."),
    whole("before_s", "End of the stretch of the same length that it was compared with, in which nothing burned."),
)

capacity_result = _table(
    "capacity_result",
    "What firsttoken capacity found, one row a run that was told to keep it (--database). The collector only reads it.",
    whole("at_s", "When the run ended.", key=True),
    *whose(),
    text("kind", "certify, size or batch.", key=True),
    text("target", "URL that was asked, without credentials and query; '' where no server was.", key=True),
    text("verdict", "certified, not_certifiable, sized or another, as the result says it."),
    text("binding", "Objective that limits; '' when unknown."),
    real_or_null("certified_rps", "Requests a second at which the objectives are shown to be kept."),
    real_or_null("refuted_rps", "Requests a second at which they are shown not to be kept."),
    real_or_null("peak_concurrency", "Mean requests in the system at the certified rate."),
    whole_or_null("chosen_batch", "Largest batch whose p95 keeps the objectives."),
    whole_or_null("feasible_min", "Least batch that keeps them."),
    whole_or_null("feasible_max", "Largest batch that keeps them."),
    whole_or_null("efficient_batch", "Least batch within 1 % of the chosen one's capacity."),
    whole_or_null("replicas", "Servers that the demand needs, spare ones included."),
    real_or_null("headroom", "Share of capacity that the peak leaves free (certify), or that is held back (size)."),
    text("result", "The whole result, as the JSON that --json writes."),
)

gauge = _table(
    "gauge",
    "Gauges of each instance (KV occupancy, queue, requests in flight ...) by step.",
    step(),
    start(),
    *whose(),
    text("instance", "service.instance.id of the sender.", key=True),
    text("name", "Name of the gauge: the metric's without its namespace, dots as underscores.", key=True),
    text("attribute", "Rank or signal the value speaks of; '' when the gauge has none.", key=True),
    real("min", "Least value seen in the step."),
    real("max", "Greatest value seen in the step."),
    real("mean", "Mean of the values seen in the step."),
    real("last", "Value seen last in the step."),
    whole("last_ns", "Event time of the last value, in nanoseconds."),
    whole("samples", "Values seen in the step."),
    cut=STEPPED,
)

counter = _table(
    "counter",
    "Increase of counters (requests by outcome, tokens, preemptions, heartbeats ...) of each instance by step.",
    step(),
    start(),
    *whose(),
    text("instance", "service.instance.id of the sender.", key=True),
    text("source", "Who counted: proxy, middleware, engine or otel.", key=True),
    text("name", "Name of the counter: the metric's without its namespace, dots as underscores.", key=True),
    text("attributes", "Outcome, class or type counted, as a JSON object; {} when none.", key=True),
    real("value", "Increase within the step."),
    cut=STEPPED,
)

series = _table(
    "series",
    "What the rollup rows speak of: the latency histogram of one signal of one instance.",
    whole("id", "Made from the other columns: the same series has the same id in every database.", key=True),
    environment(key=False),
    service(key=False),
    model(key=False),
    text("signal", "ttft, tpot, e2e or another latency of the wire."),
    text("source", "Who measured: proxy, middleware, engine or otel."),
    text("instance", "service.instance.id of the sender."),
    text("layout", "exp:SCALE for exponential bins, le:EDGES for explicit buckets in seconds."),
    whole("censored", "1: waiting times of requests that ended past a deadline without a value; else 0."),
)

rollup = _table(
    "rollup",
    "Latency histograms by step; rows of one series are merged by adding their bins. Bin i of exponential scale s "
    "holds values in (b^i, b^(i+1)] with b = 2^(2^-s); bin i of explicit buckets is the i-th bucket.",
    step(),
    start(),
    whole("series_id", "series.id", key=True),
    whole("count", "Values in the step."),
    real("sum", "Sum of the values."),
    real_or_null("min", "Least value, where the sender knew it."),
    real_or_null("max", "Greatest value, where the sender knew it."),
    whole_or_null("scale", "Scale of exponential bins; NULL for explicit buckets."),
    whole("zero_count", "Values at or under the zero threshold."),
    whole("bin_offset", "Index of the first bin."),
    text("bins", "Counts of the bins from the first on, as a JSON array."),
    cut=STEPPED,
)

slo_count = _table(
    "slo_count",
    "Good and bad events of each objective by step, as its sender judged them.",
    step(),
    start(),
    *whose(),
    objective(),
    text("objective_hash", "Hash over every field that decides good or bad.", key=True),
    whole("good", "Good events of the step."),
    whole("bad", "Bad events of the step."),
    cut=STEPPED,
)

known = _table(
    "known",
    "Steps from which telemetry of a service is known, also when nothing happened in them: what coverage counts.",
    step(),
    start(),
    environment(),
    service(),
)

instance = _table(
    "instance",
    "Every sender of telemetry, and when it was heard.",
    environment(),
    service(),
    text("instance", "service.instance.id of the sender.", key=True),
    text("source", "Who measured: proxy, middleware, engine or otel."),
    whole("first_s", "Event time of its first telemetry."),
    whole("last_s", "Event time of its last telemetry."),
    whole("periodic", "1 when it sends heartbeats or periodic metrics, so that its silence means something; else 0."),
)

batch = _table(
    "batch",
    "Digests of the bodies committed lately: a body delivered again counts once.",
    Column("digest", LargeBinary(), primary_key=True, comment="SHA-256 of the kind and the unpacked body."),
    whole("at_s", "When it was committed; forgotten after the retention of batches."),
)

stream = _table(
    "stream",
    "Last point of each cumulative stream, so that its next one counts from there, also after a restart.",
    text("stream", "What tells streams apart.", key=True),
    whole("start_ns", "Start of the stream, in nanoseconds."),
    whole("end_ns", "Event time of the last point, in nanoseconds."),
    text("value", "The last point as JSON: a number, or a histogram."),
    whole("at_s", "When it was last moved; forgotten after the retention of streams."),
)

notification = _table(
    "notification",
    "What the webhook was last told of each group of alerts.",
    text("receiver", "Address told, without credentials or query.", key=True),
    text("group_key", "The group, as its labels.", key=True),
    text("status", "firing or resolved."),
    whole("at_s", "Of which moment it knows: when it was told, or the end that it was told of."),
)

journal = _table(
    "journal",
    "What each group commit added, in the order of the commits, so that every collector on a shared database takes in "
    "what the others counted. PostgreSQL alone; rows of the last minutes.",
    whole("seq", "Number of the commit, one more than that of the commit before.", key=True),
    whole("stamp", "Random: tells the commit from another that got the same number after a restore."),
    whole("at_s", "When it was committed."),
    Column("payload", LargeBinary(), nullable=False, comment="The rows added, as JSON; for collectors alone."),
)

leader = _table(
    "leader",
    "Which of the collectors on a shared database evaluates and notifies, and until when. PostgreSQL alone; one row.",
    text("role", "evaluator.", key=True),
    text("collector", "The collector: a name made at its start."),
    whole("term", "Counts the hand-overs: figures are written by the holder of the latest term alone."),
    whole("until_s", "End of the lease by the database's clock, unless it is renewed."),
)

schema_version = _table(
    "schema_version",
    "Revision of these tables; one row.",
    text("version_num", "The revision.", key=True),
)

Index("batch_at_s", batch.c.at_s)
Index("stream_at_s", stream.c.at_s)
