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
)
 WITHOUT ROWID;

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
)
 WITHOUT ROWID;

-- Digests of the bodies committed lately: a body delivered again counts once.
CREATE TABLE batch (
	digest BLOB NOT NULL, 
	at_s BIGINT NOT NULL, 
	PRIMARY KEY (digest)
)
 WITHOUT ROWID;
CREATE INDEX batch_at_s ON batch (at_s);

-- Error budget of each objective over its own period, as of at_s.
CREATE TABLE budget (
	at_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	good BIGINT NOT NULL, 
	bad BIGINT NOT NULL, 
	allowance DOUBLE NOT NULL, 
	remaining DOUBLE NOT NULL, 
	exhausted_in_s DOUBLE, 
	coverage DOUBLE NOT NULL, 
	basis TEXT NOT NULL, 
	PRIMARY KEY (at_s, environment, service, model, objective), 
	CONSTRAINT budget_allowance_finite CHECK ("allowance" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT budget_remaining_finite CHECK ("remaining" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT budget_exhausted_in_s_finite CHECK ("exhausted_in_s" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT budget_coverage_finite CHECK ("coverage" BETWEEN -1e+308 AND 1e+308)
)
 WITHOUT ROWID;

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
	burn DOUBLE, 
	coverage DOUBLE NOT NULL, 
	basis TEXT NOT NULL, 
	unsure BIGINT NOT NULL, 
	PRIMARY KEY (at_s, environment, service, model, objective, window_s), 
	CONSTRAINT burn_rate_burn_finite CHECK ("burn" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT burn_rate_coverage_finite CHECK ("coverage" BETWEEN -1e+308 AND 1e+308)
)
 WITHOUT ROWID;

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
	value DOUBLE NOT NULL, 
	PRIMARY KEY (step_s, start_s, environment, service, model, instance, source, name, attributes), 
	CONSTRAINT counter_value_finite CHECK ("value" BETWEEN -1e+308 AND 1e+308)
)
 WITHOUT ROWID;

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
	min DOUBLE NOT NULL, 
	max DOUBLE NOT NULL, 
	mean DOUBLE NOT NULL, 
	last DOUBLE NOT NULL, 
	last_ns BIGINT NOT NULL, 
	samples BIGINT NOT NULL, 
	PRIMARY KEY (step_s, start_s, environment, service, model, instance, name, attribute), 
	CONSTRAINT gauge_min_finite CHECK ("min" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT gauge_max_finite CHECK ("max" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT gauge_mean_finite CHECK ("mean" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT gauge_last_finite CHECK ("last" BETWEEN -1e+308 AND 1e+308)
)
 WITHOUT ROWID;

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
)
 WITHOUT ROWID;

-- Steps from which telemetry of a service is known, also when nothing happened in them: what coverage counts.
CREATE TABLE known (
	step_s BIGINT NOT NULL, 
	start_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	PRIMARY KEY (step_s, start_s, environment, service)
)
 WITHOUT ROWID;

-- What the webhook was last told of each group of alerts.
CREATE TABLE notification (
	receiver TEXT NOT NULL, 
	group_key TEXT NOT NULL, 
	status TEXT NOT NULL, 
	at_s BIGINT NOT NULL, 
	PRIMARY KEY (receiver, group_key)
)
 WITHOUT ROWID;

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
	p50 DOUBLE, 
	p90 DOUBLE, 
	p95 DOUBLE, 
	p99 DOUBLE, 
	p999 DOUBLE, 
	max DOUBLE, 
	at_least DOUBLE, 
	rel_error DOUBLE, 
	coverage DOUBLE NOT NULL, 
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
)
 WITHOUT ROWID;

-- Latency histograms by step; rows of one series are merged by adding their bins. Bin i of exponential scale s holds values in (b^i, b^(i+1)] with b = 2^(2^-s); bin i of explicit buckets is the i-th bucket.
CREATE TABLE rollup (
	step_s BIGINT NOT NULL, 
	start_s BIGINT NOT NULL, 
	series_id BIGINT NOT NULL, 
	count BIGINT NOT NULL, 
	sum DOUBLE NOT NULL, 
	min DOUBLE, 
	max DOUBLE, 
	scale BIGINT, 
	zero_count BIGINT NOT NULL, 
	bin_offset BIGINT NOT NULL, 
	bins TEXT NOT NULL, 
	PRIMARY KEY (step_s, start_s, series_id), 
	CONSTRAINT rollup_sum_finite CHECK ("sum" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT rollup_min_finite CHECK ("min" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT rollup_max_finite CHECK ("max" BETWEEN -1e+308 AND 1e+308)
)
 WITHOUT ROWID;

-- Revision of these tables; one row. (The table itself is made before any revision.)

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
)
 WITHOUT ROWID;

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
)
 WITHOUT ROWID;

-- Last point of each cumulative stream, so that its next one counts from there, also after a restart.
CREATE TABLE stream (
	stream TEXT NOT NULL, 
	start_ns BIGINT NOT NULL, 
	end_ns BIGINT NOT NULL, 
	value TEXT NOT NULL, 
	at_s BIGINT NOT NULL, 
	PRIMARY KEY (stream)
)
 WITHOUT ROWID;
CREATE INDEX stream_at_s ON stream (at_s);
