-- The present state of each alert that ever left ok.
CREATE TABLE alert (
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	name TEXT NOT NULL, 
	model TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	tier TEXT NOT NULL, 
	state TEXT NOT NULL, 
	since_s BIGINT NOT NULL, 
	severity TEXT NOT NULL, 
	notify TEXT NOT NULL, 
	fired_s BIGINT, 
	labels TEXT NOT NULL, 
	annotations TEXT NOT NULL, 
	PRIMARY KEY (environment, service, name, model, objective, tier)
);
COMMENT ON TABLE alert IS 'The present state of each alert that ever left ok.';
COMMENT ON COLUMN alert.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN alert.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN alert.name IS 'Alert name, as LLMTTFTBudgetBurn.';
COMMENT ON COLUMN alert.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN alert.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN alert.tier IS 'Burn tier (fast, medium, slow, long or a name given); '''' for other alerts.';
COMMENT ON COLUMN alert.state IS 'pending (the long window burns, the short one not yet), firing or resolved.';
COMMENT ON COLUMN alert.since_s IS 'When it entered this state.';
COMMENT ON COLUMN alert.severity IS 'critical, warning or info.';
COMMENT ON COLUMN alert.notify IS 'page, ticket or none.';
COMMENT ON COLUMN alert.fired_s IS 'When the last firing began; NULL when it never fired.';
COMMENT ON COLUMN alert.labels IS 'What receivers are told as labels, as a JSON object.';
COMMENT ON COLUMN alert.annotations IS 'What receivers are told in words, as a JSON object.';

-- Every transition of every alert.
CREATE TABLE alert_event (
	at_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	name TEXT NOT NULL, 
	model TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	tier TEXT NOT NULL, 
	state TEXT NOT NULL, 
	fired_s BIGINT, 
	labels TEXT NOT NULL, 
	annotations TEXT NOT NULL, 
	PRIMARY KEY (at_s, environment, service, name, model, objective, tier, state)
);
COMMENT ON TABLE alert_event IS 'Every transition of every alert.';
COMMENT ON COLUMN alert_event.at_s IS 'When the transition happened.';
COMMENT ON COLUMN alert_event.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN alert_event.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN alert_event.name IS 'Alert name.';
COMMENT ON COLUMN alert_event.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN alert_event.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN alert_event.tier IS 'Burn tier; '''' for other alerts.';
COMMENT ON COLUMN alert_event.state IS 'State entered: pending, firing or resolved.';
COMMENT ON COLUMN alert_event.fired_s IS 'When the firing began that this belongs to; NULL when it never fired.';
COMMENT ON COLUMN alert_event.labels IS 'What receivers were told as labels, as a JSON object.';
COMMENT ON COLUMN alert_event.annotations IS 'What was said of it then, as a JSON object.';

-- Digests of the bodies committed lately: a body delivered again counts once.
CREATE TABLE batch (
	digest BYTEA NOT NULL, 
	at_s BIGINT NOT NULL, 
	PRIMARY KEY (digest)
);
CREATE INDEX batch_at_s ON batch (at_s);
COMMENT ON TABLE batch IS 'Digests of the bodies committed lately: a body delivered again counts once.';
COMMENT ON COLUMN batch.digest IS 'SHA-256 of the kind and the unpacked body.';
COMMENT ON COLUMN batch.at_s IS 'When it was committed; forgotten after the retention of batches.';

-- Error budget of each objective over its own period, as of at_s.
CREATE TABLE budget (
	at_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	good BIGINT NOT NULL, 
	bad BIGINT NOT NULL, 
	allowance DOUBLE PRECISION NOT NULL, 
	remaining DOUBLE PRECISION NOT NULL, 
	exhausted_in_s DOUBLE PRECISION, 
	coverage DOUBLE PRECISION NOT NULL, 
	basis TEXT NOT NULL, 
	PRIMARY KEY (at_s, environment, service, model, objective), 
	CONSTRAINT budget_allowance_finite CHECK ("allowance" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT budget_remaining_finite CHECK ("remaining" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT budget_exhausted_in_s_finite CHECK ("exhausted_in_s" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT budget_coverage_finite CHECK ("coverage" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE budget IS 'Error budget of each objective over its own period, as of at_s.';
COMMENT ON COLUMN budget.at_s IS 'Moment of the evaluation; the period ends here.';
COMMENT ON COLUMN budget.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN budget.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN budget.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN budget.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN budget.good IS 'Good events of the period.';
COMMENT ON COLUMN budget.bad IS 'Bad events of the period.';
COMMENT ON COLUMN budget.allowance IS 'Bad events the period may have: (1 - target) x events of a whole period.';
COMMENT ON COLUMN budget.remaining IS '1 - bad / allowance; below 0 is overspent; 1 without events.';
COMMENT ON COLUMN budget.exhausted_in_s IS 'Time to an empty budget at the last hour''s rate; NULL at rate 0, 0 once spent.';
COMMENT ON COLUMN budget.coverage IS 'Share of the period from which telemetry is known, 0 to 1.';
COMMENT ON COLUMN budget.basis IS 'counts: judged at the source; histogram: read off the histogram at the threshold.';

-- Burn rate of each objective over each rolling window, as of at_s.
CREATE TABLE burn_rate (
	at_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	window_s BIGINT NOT NULL, 
	good BIGINT NOT NULL, 
	bad BIGINT NOT NULL, 
	burn DOUBLE PRECISION, 
	coverage DOUBLE PRECISION NOT NULL, 
	basis TEXT NOT NULL, 
	unsure BIGINT NOT NULL, 
	PRIMARY KEY (at_s, environment, service, model, objective, window_s), 
	CONSTRAINT burn_rate_burn_finite CHECK ("burn" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT burn_rate_coverage_finite CHECK ("coverage" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE burn_rate IS 'Burn rate of each objective over each rolling window, as of at_s.';
COMMENT ON COLUMN burn_rate.at_s IS 'Moment of the evaluation; the window ends here.';
COMMENT ON COLUMN burn_rate.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN burn_rate.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN burn_rate.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN burn_rate.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN burn_rate.window_s IS 'Length of the window.';
COMMENT ON COLUMN burn_rate.good IS 'Good events of the window.';
COMMENT ON COLUMN burn_rate.bad IS 'Bad events of the window.';
COMMENT ON COLUMN burn_rate.burn IS '(bad / (good + bad)) / (1 - target); NULL without events.';
COMMENT ON COLUMN burn_rate.coverage IS 'Share of the window from which telemetry is known, 0 to 1.';
COMMENT ON COLUMN burn_rate.basis IS 'counts: judged at the source; histogram: read off the histogram at the threshold.';
COMMENT ON COLUMN burn_rate.unsure IS 'Events of a histogram basis that lie in the bucket which the threshold cuts; else 0.';

-- Increase of counters (requests by outcome, tokens, preemptions, heartbeats ...) of each instance by step.
CREATE TABLE counter (
	step_s BIGINT NOT NULL, 
	start_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	instance TEXT NOT NULL, 
	source TEXT NOT NULL, 
	name TEXT NOT NULL, 
	attributes TEXT NOT NULL, 
	value DOUBLE PRECISION NOT NULL, 
	PRIMARY KEY (step_s, start_s, environment, service, model, instance, source, name, attributes), 
	CONSTRAINT counter_value_finite CHECK ("value" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE counter IS 'Increase of counters (requests by outcome, tokens, preemptions, heartbeats ...) of each instance by step.';
COMMENT ON COLUMN counter.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN counter.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN counter.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN counter.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN counter.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN counter.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN counter.source IS 'Who counted: proxy, middleware, engine or otel.';
COMMENT ON COLUMN counter.name IS 'Name of the counter: the metric''s without its namespace, dots as underscores.';
COMMENT ON COLUMN counter.attributes IS 'Outcome, class or type counted, as a JSON object; {} when none.';
COMMENT ON COLUMN counter.value IS 'Increase within the step.';

-- Gauges of each instance (KV occupancy, queue, requests in flight ...) by step.
CREATE TABLE gauge (
	step_s BIGINT NOT NULL, 
	start_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	instance TEXT NOT NULL, 
	name TEXT NOT NULL, 
	attribute TEXT NOT NULL, 
	min DOUBLE PRECISION NOT NULL, 
	max DOUBLE PRECISION NOT NULL, 
	mean DOUBLE PRECISION NOT NULL, 
	last DOUBLE PRECISION NOT NULL, 
	last_ns BIGINT NOT NULL, 
	samples BIGINT NOT NULL, 
	PRIMARY KEY (step_s, start_s, environment, service, model, instance, name, attribute), 
	CONSTRAINT gauge_min_finite CHECK ("min" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT gauge_max_finite CHECK ("max" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT gauge_mean_finite CHECK ("mean" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT gauge_last_finite CHECK ("last" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE gauge IS 'Gauges of each instance (KV occupancy, queue, requests in flight ...) by step.';
COMMENT ON COLUMN gauge.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN gauge.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN gauge.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN gauge.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN gauge.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN gauge.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN gauge.name IS 'Name of the gauge: the metric''s without its namespace, dots as underscores.';
COMMENT ON COLUMN gauge.attribute IS 'Rank or signal the value speaks of; '''' when the gauge has none.';
COMMENT ON COLUMN gauge.min IS 'Least value seen in the step.';
COMMENT ON COLUMN gauge.max IS 'Greatest value seen in the step.';
COMMENT ON COLUMN gauge.mean IS 'Mean of the values seen in the step.';
COMMENT ON COLUMN gauge.last IS 'Value seen last in the step.';
COMMENT ON COLUMN gauge.last_ns IS 'Event time of the last value, in nanoseconds.';
COMMENT ON COLUMN gauge.samples IS 'Values seen in the step.';

-- Every sender of telemetry, and when it was heard.
CREATE TABLE instance (
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	instance TEXT NOT NULL, 
	source TEXT NOT NULL, 
	first_s BIGINT NOT NULL, 
	last_s BIGINT NOT NULL, 
	periodic BIGINT NOT NULL, 
	PRIMARY KEY (environment, service, instance)
);
COMMENT ON TABLE instance IS 'Every sender of telemetry, and when it was heard.';
COMMENT ON COLUMN instance.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN instance.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN instance.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN instance.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN instance.first_s IS 'Event time of its first telemetry.';
COMMENT ON COLUMN instance.last_s IS 'Event time of its last telemetry.';
COMMENT ON COLUMN instance.periodic IS '1 when it sends heartbeats or periodic metrics, so that its silence means something; else 0.';

-- Steps from which telemetry of a service is known, also when nothing happened in them: what coverage counts.
CREATE TABLE known (
	step_s BIGINT NOT NULL, 
	start_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	PRIMARY KEY (step_s, start_s, environment, service)
);
COMMENT ON TABLE known IS 'Steps from which telemetry of a service is known, also when nothing happened in them: what coverage counts.';
COMMENT ON COLUMN known.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN known.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN known.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN known.service IS 'OpenTelemetry service.name.';

-- What the webhook was last told of each group of alerts.
CREATE TABLE notification (
	receiver TEXT NOT NULL, 
	group_key TEXT NOT NULL, 
	status TEXT NOT NULL, 
	at_s BIGINT NOT NULL, 
	PRIMARY KEY (receiver, group_key)
);
COMMENT ON TABLE notification IS 'What the webhook was last told of each group of alerts.';
COMMENT ON COLUMN notification.receiver IS 'Address told, without credentials or query.';
COMMENT ON COLUMN notification.group_key IS 'The group, as its labels.';
COMMENT ON COLUMN notification.status IS 'firing or resolved.';
COMMENT ON COLUMN notification.at_s IS 'When it was told.';

-- Latency percentiles of a rolling window, as of at_s; from merged histograms, never averaged.
CREATE TABLE percentile (
	at_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	signal TEXT NOT NULL, 
	source TEXT NOT NULL, 
	window_s BIGINT NOT NULL, 
	count BIGINT NOT NULL, 
	censored BIGINT NOT NULL, 
	p50 DOUBLE PRECISION, 
	p90 DOUBLE PRECISION, 
	p95 DOUBLE PRECISION, 
	p99 DOUBLE PRECISION, 
	p999 DOUBLE PRECISION, 
	max DOUBLE PRECISION, 
	at_least DOUBLE PRECISION, 
	rel_error DOUBLE PRECISION, 
	coverage DOUBLE PRECISION NOT NULL, 
	PRIMARY KEY (at_s, environment, service, model, signal, source, window_s), 
	CONSTRAINT percentile_p50_finite CHECK ("p50" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT percentile_p90_finite CHECK ("p90" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT percentile_p95_finite CHECK ("p95" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT percentile_p99_finite CHECK ("p99" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT percentile_p999_finite CHECK ("p999" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT percentile_max_finite CHECK ("max" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT percentile_at_least_finite CHECK ("at_least" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT percentile_rel_error_finite CHECK ("rel_error" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT percentile_coverage_finite CHECK ("coverage" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE percentile IS 'Latency percentiles of a rolling window, as of at_s; from merged histograms, never averaged.';
COMMENT ON COLUMN percentile.at_s IS 'Moment of the evaluation; the window ends here.';
COMMENT ON COLUMN percentile.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN percentile.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN percentile.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN percentile.signal IS 'ttft, tpot, e2e or another latency of the wire.';
COMMENT ON COLUMN percentile.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN percentile.window_s IS 'Length of the window.';
COMMENT ON COLUMN percentile.count IS 'Requests of the window that have a value.';
COMMENT ON COLUMN percentile.censored IS 'Requests of the window past a deadline and without a value.';
COMMENT ON COLUMN percentile.p50 IS 'Median; NULL when it falls among the censored or nothing was seen.';
COMMENT ON COLUMN percentile.p90 IS '90th percentile, by the same rule.';
COMMENT ON COLUMN percentile.p95 IS '95th percentile, by the same rule.';
COMMENT ON COLUMN percentile.p99 IS '99th percentile, by the same rule.';
COMMENT ON COLUMN percentile.p999 IS '99.9th percentile, by the same rule.';
COMMENT ON COLUMN percentile.max IS 'Largest value of the window as far as its source knows it.';
COMMENT ON COLUMN percentile.at_least IS 'What every NULL quantile above is known to exceed; NULL when none is censored.';
COMMENT ON COLUMN percentile.rel_error IS 'Greatest relative error of the quantiles (0.011 is 1.1 %).';
COMMENT ON COLUMN percentile.coverage IS 'Share of the window from which telemetry is known, 0 to 1.';

-- Latency histograms by step; rows of one series are merged by adding their bins. Bin i of exponential scale s holds values in (b^i, b^(i+1)] with b = 2^(2^-s); bin i of explicit buckets is the i-th bucket.
CREATE TABLE rollup (
	step_s BIGINT NOT NULL, 
	start_s BIGINT NOT NULL, 
	series_id BIGINT NOT NULL, 
	count BIGINT NOT NULL, 
	sum DOUBLE PRECISION NOT NULL, 
	min DOUBLE PRECISION, 
	max DOUBLE PRECISION, 
	scale BIGINT, 
	zero_count BIGINT NOT NULL, 
	bin_offset BIGINT NOT NULL, 
	bins TEXT NOT NULL, 
	PRIMARY KEY (step_s, start_s, series_id), 
	CONSTRAINT rollup_sum_finite CHECK ("sum" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT rollup_min_finite CHECK ("min" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT rollup_max_finite CHECK ("max" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE rollup IS 'Latency histograms by step; rows of one series are merged by adding their bins. Bin i of exponential scale s holds values in (b^i, b^(i+1)] with b = 2^(2^-s); bin i of explicit buckets is the i-th bucket.';
COMMENT ON COLUMN rollup.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN rollup.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN rollup.series_id IS 'series.id';
COMMENT ON COLUMN rollup.count IS 'Values in the step.';
COMMENT ON COLUMN rollup.sum IS 'Sum of the values.';
COMMENT ON COLUMN rollup.min IS 'Least value, where the sender knew it.';
COMMENT ON COLUMN rollup.max IS 'Greatest value, where the sender knew it.';
COMMENT ON COLUMN rollup.scale IS 'Scale of exponential bins; NULL for explicit buckets.';
COMMENT ON COLUMN rollup.zero_count IS 'Values at or under the zero threshold.';
COMMENT ON COLUMN rollup.bin_offset IS 'Index of the first bin.';
COMMENT ON COLUMN rollup.bins IS 'Counts of the bins from the first on, as a JSON array.';

-- Revision of these tables; one row. (The table itself is made before any revision.)
COMMENT ON TABLE schema_version IS 'Revision of these tables; one row.';
COMMENT ON COLUMN schema_version.version_num IS 'The revision.';

-- What the rollup rows speak of: the latency histogram of one signal of one instance.
CREATE TABLE series (
	id BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	signal TEXT NOT NULL, 
	source TEXT NOT NULL, 
	instance TEXT NOT NULL, 
	layout TEXT NOT NULL, 
	censored BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
COMMENT ON TABLE series IS 'What the rollup rows speak of: the latency histogram of one signal of one instance.';
COMMENT ON COLUMN series.id IS 'Made from the other columns: the same series has the same id in every database.';
COMMENT ON COLUMN series.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN series.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN series.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN series.signal IS 'ttft, tpot, e2e or another latency of the wire.';
COMMENT ON COLUMN series.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN series.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN series.layout IS 'exp:SCALE for exponential bins, le:EDGES for explicit buckets in seconds.';
COMMENT ON COLUMN series.censored IS '1: waiting times of requests that ended past a deadline without a value; else 0.';

-- Good and bad events of each objective by step, as its sender judged them.
CREATE TABLE slo_count (
	step_s BIGINT NOT NULL, 
	start_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	objective_hash TEXT NOT NULL, 
	good BIGINT NOT NULL, 
	bad BIGINT NOT NULL, 
	PRIMARY KEY (step_s, start_s, environment, service, model, objective, objective_hash)
);
COMMENT ON TABLE slo_count IS 'Good and bad events of each objective by step, as its sender judged them.';
COMMENT ON COLUMN slo_count.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN slo_count.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN slo_count.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN slo_count.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN slo_count.model IS 'Model name; unknown, other or * (all the models of an objective).';
COMMENT ON COLUMN slo_count.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN slo_count.objective_hash IS 'Hash over every field that decides good or bad.';
COMMENT ON COLUMN slo_count.good IS 'Good events of the step.';
COMMENT ON COLUMN slo_count.bad IS 'Bad events of the step.';

-- Last point of each cumulative stream, so that its next one counts from there, also after a restart.
CREATE TABLE stream (
	stream TEXT NOT NULL, 
	start_ns BIGINT NOT NULL, 
	end_ns BIGINT NOT NULL, 
	value TEXT NOT NULL, 
	at_s BIGINT NOT NULL, 
	PRIMARY KEY (stream)
);
CREATE INDEX stream_at_s ON stream (at_s);
COMMENT ON TABLE stream IS 'Last point of each cumulative stream, so that its next one counts from there, also after a restart.';
COMMENT ON COLUMN stream.stream IS 'What tells streams apart.';
COMMENT ON COLUMN stream.start_ns IS 'Start of the stream, in nanoseconds.';
COMMENT ON COLUMN stream.end_ns IS 'Event time of the last point, in nanoseconds.';
COMMENT ON COLUMN stream.value IS 'The last point as JSON: a number, or a histogram.';
COMMENT ON COLUMN stream.at_s IS 'When it was last moved; forgotten after the retention of streams.';
