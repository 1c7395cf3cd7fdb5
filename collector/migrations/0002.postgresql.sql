-- alert: other words.
COMMENT ON COLUMN alert.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';

-- alert_event: other words.
COMMENT ON COLUMN alert_event.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';

-- Error budget of each objective over its own period, as of at_s.
ALTER TABLE budget RENAME TO budget_0001;
ALTER INDEX budget_pkey RENAME TO budget_0001_pkey;
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
)
 PARTITION BY RANGE (at_s);
CREATE TABLE budget_rest PARTITION OF budget DEFAULT;
COMMENT ON TABLE budget IS 'Error budget of each objective over its own period, as of at_s.';
COMMENT ON COLUMN budget.at_s IS 'Moment of the evaluation; the period ends here.';
COMMENT ON COLUMN budget.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN budget.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN budget.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN budget.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN budget.good IS 'Good events of the period.';
COMMENT ON COLUMN budget.bad IS 'Bad events of the period.';
COMMENT ON COLUMN budget.allowance IS 'Bad events the period may have: (1 - target) x events of a whole period.';
COMMENT ON COLUMN budget.remaining IS '1 - bad / allowance; below 0 is overspent; 1 without events.';
COMMENT ON COLUMN budget.exhausted_in_s IS 'Time to an empty budget at the last hour''s rate; NULL at rate 0, 0 once spent.';
COMMENT ON COLUMN budget.coverage IS 'Share of the period from which telemetry is known, 0 to 1.';
COMMENT ON COLUMN budget.basis IS 'counts: judged at the source; histogram: read off the histogram at the threshold.';
INSERT INTO budget (at_s, environment, service, model, objective, good, bad, allowance, remaining, exhausted_in_s, coverage, basis)
SELECT at_s, environment, service, model, objective, good, bad, allowance, remaining, exhausted_in_s, coverage, basis FROM budget_0001;
DROP TABLE budget_0001;

-- Burn rate of each objective over each rolling window, as of at_s.
ALTER TABLE burn_rate RENAME TO burn_rate_0001;
ALTER INDEX burn_rate_pkey RENAME TO burn_rate_0001_pkey;
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
)
 PARTITION BY RANGE (at_s);
CREATE TABLE burn_rate_rest PARTITION OF burn_rate DEFAULT;
COMMENT ON TABLE burn_rate IS 'Burn rate of each objective over each rolling window, as of at_s.';
COMMENT ON COLUMN burn_rate.at_s IS 'Moment of the evaluation; the window ends here.';
COMMENT ON COLUMN burn_rate.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN burn_rate.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN burn_rate.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN burn_rate.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN burn_rate.window_s IS 'Length of the window.';
COMMENT ON COLUMN burn_rate.good IS 'Good events of the window.';
COMMENT ON COLUMN burn_rate.bad IS 'Bad events of the window.';
COMMENT ON COLUMN burn_rate.burn IS '(bad / (good + bad)) / (1 - target); NULL without events.';
COMMENT ON COLUMN burn_rate.coverage IS 'Share of the window from which telemetry is known, 0 to 1.';
COMMENT ON COLUMN burn_rate.basis IS 'counts: judged at the source; histogram: read off the histogram at the threshold.';
COMMENT ON COLUMN burn_rate.unsure IS 'Events of a histogram basis that lie in the bucket which the threshold cuts; else 0.';
INSERT INTO burn_rate (at_s, environment, service, model, objective, window_s, good, bad, burn, coverage, basis, unsure)
SELECT at_s, environment, service, model, objective, window_s, good, bad, burn, coverage, basis, unsure FROM burn_rate_0001;
DROP TABLE burn_rate_0001;

-- Increase of counters (requests by outcome, tokens, preemptions, heartbeats ...) of each instance by step.
ALTER TABLE counter RENAME TO counter_0001;
ALTER INDEX counter_pkey RENAME TO counter_0001_pkey;
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
)
 PARTITION BY RANGE (step_s);
CREATE TABLE counter_fine PARTITION OF counter FOR VALUES FROM (MINVALUE) TO (60) PARTITION BY RANGE (start_s);
CREATE TABLE counter_minute PARTITION OF counter FOR VALUES FROM (60) TO (600) PARTITION BY RANGE (start_s);
CREATE TABLE counter_ten_minutes PARTITION OF counter FOR VALUES FROM (600) TO (3600) PARTITION BY RANGE (start_s);
CREATE TABLE counter_hour PARTITION OF counter FOR VALUES FROM (3600) TO (MAXVALUE) PARTITION BY RANGE (start_s);
CREATE TABLE counter_fine_rest PARTITION OF counter_fine DEFAULT;
CREATE TABLE counter_minute_rest PARTITION OF counter_minute DEFAULT;
CREATE TABLE counter_ten_minutes_rest PARTITION OF counter_ten_minutes DEFAULT;
CREATE TABLE counter_hour_rest PARTITION OF counter_hour DEFAULT;
COMMENT ON TABLE counter IS 'Increase of counters (requests by outcome, tokens, preemptions, heartbeats ...) of each instance by step.';
COMMENT ON COLUMN counter.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN counter.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN counter.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN counter.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN counter.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN counter.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN counter.source IS 'Who counted: proxy, middleware, engine or otel.';
COMMENT ON COLUMN counter.name IS 'Name of the counter: the metric''s without its namespace, dots as underscores.';
COMMENT ON COLUMN counter.attributes IS 'Outcome, class or type counted, as a JSON object; {} when none.';
COMMENT ON COLUMN counter.value IS 'Increase within the step.';
INSERT INTO counter (step_s, start_s, environment, service, model, instance, source, name, attributes, value)
SELECT step_s, start_s, environment, service, model, instance, source, name, attributes, value FROM counter_0001;
DROP TABLE counter_0001;

-- Gauges of each instance (KV occupancy, queue, requests in flight ...) by step.
ALTER TABLE gauge RENAME TO gauge_0001;
ALTER INDEX gauge_pkey RENAME TO gauge_0001_pkey;
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
)
 PARTITION BY RANGE (step_s);
CREATE TABLE gauge_fine PARTITION OF gauge FOR VALUES FROM (MINVALUE) TO (60) PARTITION BY RANGE (start_s);
CREATE TABLE gauge_minute PARTITION OF gauge FOR VALUES FROM (60) TO (600) PARTITION BY RANGE (start_s);
CREATE TABLE gauge_ten_minutes PARTITION OF gauge FOR VALUES FROM (600) TO (3600) PARTITION BY RANGE (start_s);
CREATE TABLE gauge_hour PARTITION OF gauge FOR VALUES FROM (3600) TO (MAXVALUE) PARTITION BY RANGE (start_s);
CREATE TABLE gauge_fine_rest PARTITION OF gauge_fine DEFAULT;
CREATE TABLE gauge_minute_rest PARTITION OF gauge_minute DEFAULT;
CREATE TABLE gauge_ten_minutes_rest PARTITION OF gauge_ten_minutes DEFAULT;
CREATE TABLE gauge_hour_rest PARTITION OF gauge_hour DEFAULT;
COMMENT ON TABLE gauge IS 'Gauges of each instance (KV occupancy, queue, requests in flight ...) by step.';
COMMENT ON COLUMN gauge.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN gauge.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN gauge.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN gauge.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN gauge.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN gauge.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN gauge.name IS 'Name of the gauge: the metric''s without its namespace, dots as underscores.';
COMMENT ON COLUMN gauge.attribute IS 'Rank or signal the value speaks of; '''' when the gauge has none.';
COMMENT ON COLUMN gauge.min IS 'Least value seen in the step.';
COMMENT ON COLUMN gauge.max IS 'Greatest value seen in the step.';
COMMENT ON COLUMN gauge.mean IS 'Mean of the values seen in the step.';
COMMENT ON COLUMN gauge.last IS 'Value seen last in the step.';
COMMENT ON COLUMN gauge.last_ns IS 'Event time of the last value, in nanoseconds.';
COMMENT ON COLUMN gauge.samples IS 'Values seen in the step.';
INSERT INTO gauge (step_s, start_s, environment, service, model, instance, name, attribute, min, max, mean, last, last_ns, samples)
SELECT step_s, start_s, environment, service, model, instance, name, attribute, min, max, mean, last, last_ns, samples FROM gauge_0001;
DROP TABLE gauge_0001;

-- What each group commit added, in the order of the commits, so that every collector on a shared database takes in what the others counted. PostgreSQL alone; rows of the last minutes.
CREATE TABLE journal (
	seq BIGINT NOT NULL, 
	stamp BIGINT NOT NULL, 
	at_s BIGINT NOT NULL, 
	payload BYTEA NOT NULL, 
	PRIMARY KEY (seq)
);
COMMENT ON TABLE journal IS 'What each group commit added, in the order of the commits, so that every collector on a shared database takes in what the others counted. PostgreSQL alone; rows of the last minutes.';
COMMENT ON COLUMN journal.seq IS 'Number of the commit, one more than that of the commit before.';
COMMENT ON COLUMN journal.stamp IS 'Random: tells the commit from another that got the same number after a restore.';
COMMENT ON COLUMN journal.at_s IS 'When it was committed.';
COMMENT ON COLUMN journal.payload IS 'The rows added, as JSON; for collectors alone.';

-- Which of the collectors on a shared database evaluates and notifies, and until when. PostgreSQL alone; one row.
CREATE TABLE leader (
	role TEXT NOT NULL, 
	collector TEXT NOT NULL, 
	term BIGINT NOT NULL, 
	until_s BIGINT NOT NULL, 
	PRIMARY KEY (role)
);
COMMENT ON TABLE leader IS 'Which of the collectors on a shared database evaluates and notifies, and until when. PostgreSQL alone; one row.';
COMMENT ON COLUMN leader.role IS 'evaluator.';
COMMENT ON COLUMN leader.collector IS 'The collector: a name made at its start.';
COMMENT ON COLUMN leader.term IS 'Counts the hand-overs: figures are written by the holder of the latest term alone.';
COMMENT ON COLUMN leader.until_s IS 'End of the lease by the database''s clock, unless it is renewed.';

-- notification: other words.
COMMENT ON COLUMN notification.at_s IS 'Of which moment it knows: when it was told, or the end that it was told of.';

-- Latency percentiles of a rolling window, as of at_s; from merged histograms, never averaged.
ALTER TABLE percentile RENAME TO percentile_0001;
ALTER INDEX percentile_pkey RENAME TO percentile_0001_pkey;
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
)
 PARTITION BY RANGE (at_s);
CREATE TABLE percentile_rest PARTITION OF percentile DEFAULT;
COMMENT ON TABLE percentile IS 'Latency percentiles of a rolling window, as of at_s; from merged histograms, never averaged.';
COMMENT ON COLUMN percentile.at_s IS 'Moment of the evaluation; the window ends here.';
COMMENT ON COLUMN percentile.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN percentile.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN percentile.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
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
INSERT INTO percentile (at_s, environment, service, model, signal, source, window_s, count, censored, p50, p90, p95, p99, p999, max, at_least, rel_error, coverage)
SELECT at_s, environment, service, model, signal, source, window_s, count, censored, p50, p90, p95, p99, p999, max, at_least, rel_error, coverage FROM percentile_0001;
DROP TABLE percentile_0001;

-- Latency histograms by step; rows of one series are merged by adding their bins. Bin i of exponential scale s holds values in (b^i, b^(i+1)] with b = 2^(2^-s); bin i of explicit buckets is the i-th bucket.
ALTER TABLE rollup RENAME TO rollup_0001;
ALTER INDEX rollup_pkey RENAME TO rollup_0001_pkey;
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
)
 PARTITION BY RANGE (step_s);
CREATE TABLE rollup_fine PARTITION OF rollup FOR VALUES FROM (MINVALUE) TO (60) PARTITION BY RANGE (start_s);
CREATE TABLE rollup_minute PARTITION OF rollup FOR VALUES FROM (60) TO (600) PARTITION BY RANGE (start_s);
CREATE TABLE rollup_ten_minutes PARTITION OF rollup FOR VALUES FROM (600) TO (3600) PARTITION BY RANGE (start_s);
CREATE TABLE rollup_hour PARTITION OF rollup FOR VALUES FROM (3600) TO (MAXVALUE) PARTITION BY RANGE (start_s);
CREATE TABLE rollup_fine_rest PARTITION OF rollup_fine DEFAULT;
CREATE TABLE rollup_minute_rest PARTITION OF rollup_minute DEFAULT;
CREATE TABLE rollup_ten_minutes_rest PARTITION OF rollup_ten_minutes DEFAULT;
CREATE TABLE rollup_hour_rest PARTITION OF rollup_hour DEFAULT;
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
INSERT INTO rollup (step_s, start_s, series_id, count, sum, min, max, scale, zero_count, bin_offset, bins)
SELECT step_s, start_s, series_id, count, sum, min, max, scale, zero_count, bin_offset, bins FROM rollup_0001;
DROP TABLE rollup_0001;

-- series: other words.
COMMENT ON COLUMN series.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';

-- Good and bad events of each objective by step, as its sender judged them.
ALTER TABLE slo_count RENAME TO slo_count_0001;
ALTER INDEX slo_count_pkey RENAME TO slo_count_0001_pkey;
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
 PARTITION BY RANGE (step_s);
CREATE TABLE slo_count_fine PARTITION OF slo_count FOR VALUES FROM (MINVALUE) TO (60) PARTITION BY RANGE (start_s);
CREATE TABLE slo_count_minute PARTITION OF slo_count FOR VALUES FROM (60) TO (600) PARTITION BY RANGE (start_s);
CREATE TABLE slo_count_ten_minutes PARTITION OF slo_count FOR VALUES FROM (600) TO (3600) PARTITION BY RANGE (start_s);
CREATE TABLE slo_count_hour PARTITION OF slo_count FOR VALUES FROM (3600) TO (MAXVALUE) PARTITION BY RANGE (start_s);
CREATE TABLE slo_count_fine_rest PARTITION OF slo_count_fine DEFAULT;
CREATE TABLE slo_count_minute_rest PARTITION OF slo_count_minute DEFAULT;
CREATE TABLE slo_count_ten_minutes_rest PARTITION OF slo_count_ten_minutes DEFAULT;
CREATE TABLE slo_count_hour_rest PARTITION OF slo_count_hour DEFAULT;
COMMENT ON TABLE slo_count IS 'Good and bad events of each objective by step, as its sender judged them.';
COMMENT ON COLUMN slo_count.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN slo_count.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN slo_count.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN slo_count.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN slo_count.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN slo_count.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN slo_count.objective_hash IS 'Hash over every field that decides good or bad.';
COMMENT ON COLUMN slo_count.good IS 'Good events of the step.';
COMMENT ON COLUMN slo_count.bad IS 'Bad events of the step.';
INSERT INTO slo_count (step_s, start_s, environment, service, model, objective, objective_hash, good, bad)
SELECT step_s, start_s, environment, service, model, objective, objective_hash, good, bad FROM slo_count_0001;
DROP TABLE slo_count_0001;

-- Latency percentiles of rolling windows, with timestamps.
CREATE VIEW percentiles AS
SELECT to_timestamp(percentile.at_s) AS at, CASE WHEN (percentile.window_s % 86400 = 0) THEN CAST(percentile.window_s / 86400 AS TEXT) || 'd' WHEN (percentile.window_s % 3600 = 0) THEN CAST(percentile.window_s / 3600 AS TEXT) || 'h' WHEN (percentile.window_s % 60 = 0) THEN CAST(percentile.window_s / 60 AS TEXT) || 'm' ELSE CAST(percentile.window_s / 1 AS TEXT) || 's' END AS window_label, percentile.at_s, percentile.environment, percentile.service, percentile.model, percentile.signal, percentile.source, percentile.window_s, percentile.count, percentile.censored, percentile.p50, percentile.p90, percentile.p95, percentile.p99, percentile.p999, percentile.max, percentile.at_least, percentile.rel_error, percentile.coverage 
FROM percentile;
COMMENT ON VIEW percentiles IS 'Latency percentiles of rolling windows, with timestamps.';
COMMENT ON COLUMN percentiles.at IS 'The same moment as a timestamp in UTC.';
COMMENT ON COLUMN percentiles.window_label IS 'The window as text: 5m, 1h, 3d.';
COMMENT ON COLUMN percentiles.at_s IS 'Moment of the evaluation; the window ends here.';
COMMENT ON COLUMN percentiles.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN percentiles.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN percentiles.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN percentiles.signal IS 'ttft, tpot, e2e or another latency of the wire.';
COMMENT ON COLUMN percentiles.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN percentiles.window_s IS 'Length of the window.';
COMMENT ON COLUMN percentiles.count IS 'Requests of the window that have a value.';
COMMENT ON COLUMN percentiles.censored IS 'Requests of the window past a deadline and without a value.';
COMMENT ON COLUMN percentiles.p50 IS 'Median; NULL when it falls among the censored or nothing was seen.';
COMMENT ON COLUMN percentiles.p90 IS '90th percentile, by the same rule.';
COMMENT ON COLUMN percentiles.p95 IS '95th percentile, by the same rule.';
COMMENT ON COLUMN percentiles.p99 IS '99th percentile, by the same rule.';
COMMENT ON COLUMN percentiles.p999 IS '99.9th percentile, by the same rule.';
COMMENT ON COLUMN percentiles.max IS 'Largest value of the window as far as its source knows it.';
COMMENT ON COLUMN percentiles.at_least IS 'What every NULL quantile above is known to exceed; NULL when none is censored.';
COMMENT ON COLUMN percentiles.rel_error IS 'Greatest relative error of the quantiles (0.011 is 1.1 %).';
COMMENT ON COLUMN percentiles.coverage IS 'Share of the window from which telemetry is known, 0 to 1.';

-- Latency percentiles of rolling windows, of the last evaluation alone.
CREATE VIEW percentiles_latest AS
SELECT to_timestamp(percentile.at_s) AS at, CASE WHEN (percentile.window_s % 86400 = 0) THEN CAST(percentile.window_s / 86400 AS TEXT) || 'd' WHEN (percentile.window_s % 3600 = 0) THEN CAST(percentile.window_s / 3600 AS TEXT) || 'h' WHEN (percentile.window_s % 60 = 0) THEN CAST(percentile.window_s / 60 AS TEXT) || 'm' ELSE CAST(percentile.window_s / 1 AS TEXT) || 's' END AS window_label, percentile.at_s, percentile.environment, percentile.service, percentile.model, percentile.signal, percentile.source, percentile.window_s, percentile.count, percentile.censored, percentile.p50, percentile.p90, percentile.p95, percentile.p99, percentile.p999, percentile.max, percentile.at_least, percentile.rel_error, percentile.coverage 
FROM percentile 
WHERE percentile.at_s = (SELECT max(percentile.at_s) AS max_1 
FROM percentile);
COMMENT ON VIEW percentiles_latest IS 'Latency percentiles of rolling windows, of the last evaluation alone.';
COMMENT ON COLUMN percentiles_latest.at IS 'The same moment as a timestamp in UTC.';
COMMENT ON COLUMN percentiles_latest.window_label IS 'The window as text: 5m, 1h, 3d.';
COMMENT ON COLUMN percentiles_latest.at_s IS 'Moment of the evaluation; the window ends here.';
COMMENT ON COLUMN percentiles_latest.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN percentiles_latest.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN percentiles_latest.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN percentiles_latest.signal IS 'ttft, tpot, e2e or another latency of the wire.';
COMMENT ON COLUMN percentiles_latest.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN percentiles_latest.window_s IS 'Length of the window.';
COMMENT ON COLUMN percentiles_latest.count IS 'Requests of the window that have a value.';
COMMENT ON COLUMN percentiles_latest.censored IS 'Requests of the window past a deadline and without a value.';
COMMENT ON COLUMN percentiles_latest.p50 IS 'Median; NULL when it falls among the censored or nothing was seen.';
COMMENT ON COLUMN percentiles_latest.p90 IS '90th percentile, by the same rule.';
COMMENT ON COLUMN percentiles_latest.p95 IS '95th percentile, by the same rule.';
COMMENT ON COLUMN percentiles_latest.p99 IS '99th percentile, by the same rule.';
COMMENT ON COLUMN percentiles_latest.p999 IS '99.9th percentile, by the same rule.';
COMMENT ON COLUMN percentiles_latest.max IS 'Largest value of the window as far as its source knows it.';
COMMENT ON COLUMN percentiles_latest.at_least IS 'What every NULL quantile above is known to exceed; NULL when none is censored.';
COMMENT ON COLUMN percentiles_latest.rel_error IS 'Greatest relative error of the quantiles (0.011 is 1.1 %).';
COMMENT ON COLUMN percentiles_latest.coverage IS 'Share of the window from which telemetry is known, 0 to 1.';

-- Burn rates of the objectives, with timestamps.
CREATE VIEW burn_rates AS
SELECT to_timestamp(burn_rate.at_s) AS at, CASE WHEN (burn_rate.window_s % 86400 = 0) THEN CAST(burn_rate.window_s / 86400 AS TEXT) || 'd' WHEN (burn_rate.window_s % 3600 = 0) THEN CAST(burn_rate.window_s / 3600 AS TEXT) || 'h' WHEN (burn_rate.window_s % 60 = 0) THEN CAST(burn_rate.window_s / 60 AS TEXT) || 'm' ELSE CAST(burn_rate.window_s / 1 AS TEXT) || 's' END AS window_label, burn_rate.at_s, burn_rate.environment, burn_rate.service, burn_rate.model, burn_rate.objective, burn_rate.window_s, burn_rate.good, burn_rate.bad, burn_rate.burn, burn_rate.coverage, burn_rate.basis, burn_rate.unsure 
FROM burn_rate;
COMMENT ON VIEW burn_rates IS 'Burn rates of the objectives, with timestamps.';
COMMENT ON COLUMN burn_rates.at IS 'The same moment as a timestamp in UTC.';
COMMENT ON COLUMN burn_rates.window_label IS 'The window as text: 5m, 1h, 3d.';
COMMENT ON COLUMN burn_rates.at_s IS 'Moment of the evaluation; the window ends here.';
COMMENT ON COLUMN burn_rates.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN burn_rates.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN burn_rates.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN burn_rates.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN burn_rates.window_s IS 'Length of the window.';
COMMENT ON COLUMN burn_rates.good IS 'Good events of the window.';
COMMENT ON COLUMN burn_rates.bad IS 'Bad events of the window.';
COMMENT ON COLUMN burn_rates.burn IS '(bad / (good + bad)) / (1 - target); NULL without events.';
COMMENT ON COLUMN burn_rates.coverage IS 'Share of the window from which telemetry is known, 0 to 1.';
COMMENT ON COLUMN burn_rates.basis IS 'counts: judged at the source; histogram: read off the histogram at the threshold.';
COMMENT ON COLUMN burn_rates.unsure IS 'Events of a histogram basis that lie in the bucket which the threshold cuts; else 0.';

-- Burn rates of the objectives, of the last evaluation alone.
CREATE VIEW burn_rates_latest AS
SELECT to_timestamp(burn_rate.at_s) AS at, CASE WHEN (burn_rate.window_s % 86400 = 0) THEN CAST(burn_rate.window_s / 86400 AS TEXT) || 'd' WHEN (burn_rate.window_s % 3600 = 0) THEN CAST(burn_rate.window_s / 3600 AS TEXT) || 'h' WHEN (burn_rate.window_s % 60 = 0) THEN CAST(burn_rate.window_s / 60 AS TEXT) || 'm' ELSE CAST(burn_rate.window_s / 1 AS TEXT) || 's' END AS window_label, burn_rate.at_s, burn_rate.environment, burn_rate.service, burn_rate.model, burn_rate.objective, burn_rate.window_s, burn_rate.good, burn_rate.bad, burn_rate.burn, burn_rate.coverage, burn_rate.basis, burn_rate.unsure 
FROM burn_rate 
WHERE burn_rate.at_s = (SELECT max(burn_rate.at_s) AS max_1 
FROM burn_rate);
COMMENT ON VIEW burn_rates_latest IS 'Burn rates of the objectives, of the last evaluation alone.';
COMMENT ON COLUMN burn_rates_latest.at IS 'The same moment as a timestamp in UTC.';
COMMENT ON COLUMN burn_rates_latest.window_label IS 'The window as text: 5m, 1h, 3d.';
COMMENT ON COLUMN burn_rates_latest.at_s IS 'Moment of the evaluation; the window ends here.';
COMMENT ON COLUMN burn_rates_latest.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN burn_rates_latest.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN burn_rates_latest.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN burn_rates_latest.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN burn_rates_latest.window_s IS 'Length of the window.';
COMMENT ON COLUMN burn_rates_latest.good IS 'Good events of the window.';
COMMENT ON COLUMN burn_rates_latest.bad IS 'Bad events of the window.';
COMMENT ON COLUMN burn_rates_latest.burn IS '(bad / (good + bad)) / (1 - target); NULL without events.';
COMMENT ON COLUMN burn_rates_latest.coverage IS 'Share of the window from which telemetry is known, 0 to 1.';
COMMENT ON COLUMN burn_rates_latest.basis IS 'counts: judged at the source; histogram: read off the histogram at the threshold.';
COMMENT ON COLUMN burn_rates_latest.unsure IS 'Events of a histogram basis that lie in the bucket which the threshold cuts; else 0.';

-- Error budgets of the objectives, with timestamps.
CREATE VIEW budgets AS
SELECT to_timestamp(budget.at_s) AS at, budget.at_s, budget.environment, budget.service, budget.model, budget.objective, budget.good, budget.bad, budget.allowance, budget.remaining, budget.exhausted_in_s, budget.coverage, budget.basis 
FROM budget;
COMMENT ON VIEW budgets IS 'Error budgets of the objectives, with timestamps.';
COMMENT ON COLUMN budgets.at IS 'The same moment as a timestamp in UTC.';
COMMENT ON COLUMN budgets.at_s IS 'Moment of the evaluation; the period ends here.';
COMMENT ON COLUMN budgets.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN budgets.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN budgets.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN budgets.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN budgets.good IS 'Good events of the period.';
COMMENT ON COLUMN budgets.bad IS 'Bad events of the period.';
COMMENT ON COLUMN budgets.allowance IS 'Bad events the period may have: (1 - target) x events of a whole period.';
COMMENT ON COLUMN budgets.remaining IS '1 - bad / allowance; below 0 is overspent; 1 without events.';
COMMENT ON COLUMN budgets.exhausted_in_s IS 'Time to an empty budget at the last hour''s rate; NULL at rate 0, 0 once spent.';
COMMENT ON COLUMN budgets.coverage IS 'Share of the period from which telemetry is known, 0 to 1.';
COMMENT ON COLUMN budgets.basis IS 'counts: judged at the source; histogram: read off the histogram at the threshold.';

-- Error budgets of the objectives, of the last evaluation alone.
CREATE VIEW budgets_latest AS
SELECT to_timestamp(budget.at_s) AS at, budget.at_s, budget.environment, budget.service, budget.model, budget.objective, budget.good, budget.bad, budget.allowance, budget.remaining, budget.exhausted_in_s, budget.coverage, budget.basis 
FROM budget 
WHERE budget.at_s = (SELECT max(budget.at_s) AS max_1 
FROM budget);
COMMENT ON VIEW budgets_latest IS 'Error budgets of the objectives, of the last evaluation alone.';
COMMENT ON COLUMN budgets_latest.at IS 'The same moment as a timestamp in UTC.';
COMMENT ON COLUMN budgets_latest.at_s IS 'Moment of the evaluation; the period ends here.';
COMMENT ON COLUMN budgets_latest.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN budgets_latest.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN budgets_latest.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN budgets_latest.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN budgets_latest.good IS 'Good events of the period.';
COMMENT ON COLUMN budgets_latest.bad IS 'Bad events of the period.';
COMMENT ON COLUMN budgets_latest.allowance IS 'Bad events the period may have: (1 - target) x events of a whole period.';
COMMENT ON COLUMN budgets_latest.remaining IS '1 - bad / allowance; below 0 is overspent; 1 without events.';
COMMENT ON COLUMN budgets_latest.exhausted_in_s IS 'Time to an empty budget at the last hour''s rate; NULL at rate 0, 0 once spent.';
COMMENT ON COLUMN budgets_latest.coverage IS 'Share of the period from which telemetry is known, 0 to 1.';
COMMENT ON COLUMN budgets_latest.basis IS 'counts: judged at the source; histogram: read off the histogram at the threshold.';

-- The present state of each alert, with timestamps.
CREATE VIEW alerts AS
SELECT to_timestamp(alert.since_s) AS since, to_timestamp(alert.fired_s) AS fired, alert.environment, alert.service, alert.name, alert.model, alert.objective, alert.tier, alert.state, alert.since_s, alert.severity, alert.notify, alert.fired_s, alert.labels, alert.annotations 
FROM alert;
COMMENT ON VIEW alerts IS 'The present state of each alert, with timestamps.';
COMMENT ON COLUMN alerts.since IS 'When it entered this state, as a timestamp in UTC.';
COMMENT ON COLUMN alerts.fired IS 'When the last firing began, as a timestamp in UTC; NULL when it never fired.';
COMMENT ON COLUMN alerts.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN alerts.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN alerts.name IS 'Alert name, as LLMTTFTBudgetBurn.';
COMMENT ON COLUMN alerts.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN alerts.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN alerts.tier IS 'Burn tier (fast, medium, slow, long or a name given); '''' for other alerts.';
COMMENT ON COLUMN alerts.state IS 'pending (the long window burns, the short one not yet), firing or resolved.';
COMMENT ON COLUMN alerts.since_s IS 'When it entered this state.';
COMMENT ON COLUMN alerts.severity IS 'critical, warning or info.';
COMMENT ON COLUMN alerts.notify IS 'page, ticket or none.';
COMMENT ON COLUMN alerts.fired_s IS 'When the last firing began; NULL when it never fired.';
COMMENT ON COLUMN alerts.labels IS 'What receivers are told as labels, as a JSON object.';
COMMENT ON COLUMN alerts.annotations IS 'What receivers are told in words, as a JSON object.';

-- Every transition of every alert, with timestamps and how long a firing lasted.
CREATE VIEW alert_events AS
SELECT to_timestamp(alert_event.at_s) AS at, alert_event.at_s, alert_event.environment, alert_event.service, alert_event.name, alert_event.model, alert_event.objective, alert_event.tier, alert_event.state, alert_event.fired_s, alert_event.labels, alert_event.annotations, CASE WHEN (alert_event.state = 'resolved') THEN alert_event.at_s - alert_event.fired_s END AS lasted_s 
FROM alert_event;
COMMENT ON VIEW alert_events IS 'Every transition of every alert, with timestamps and how long a firing lasted.';
COMMENT ON COLUMN alert_events.at IS 'The same moment as a timestamp in UTC.';
COMMENT ON COLUMN alert_events.at_s IS 'When the transition happened.';
COMMENT ON COLUMN alert_events.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN alert_events.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN alert_events.name IS 'Alert name.';
COMMENT ON COLUMN alert_events.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN alert_events.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN alert_events.tier IS 'Burn tier; '''' for other alerts.';
COMMENT ON COLUMN alert_events.state IS 'State entered: pending, firing or resolved.';
COMMENT ON COLUMN alert_events.fired_s IS 'When the firing began that this belongs to; NULL when it never fired.';
COMMENT ON COLUMN alert_events.labels IS 'What receivers were told as labels, as a JSON object.';
COMMENT ON COLUMN alert_events.annotations IS 'What was said of it then, as a JSON object.';
COMMENT ON COLUMN alert_events.lasted_s IS 'How long it fired; NULL unless a firing ended here.';

-- Every sender of telemetry, with timestamps.
CREATE VIEW instances AS
SELECT to_timestamp(instance.first_s) AS first, to_timestamp(instance.last_s) AS last, instance.environment, instance.service, instance.instance, instance.source, instance.first_s, instance.last_s, instance.periodic 
FROM instance;
COMMENT ON VIEW instances IS 'Every sender of telemetry, with timestamps.';
COMMENT ON COLUMN instances.first IS 'Event time of its first telemetry, as a timestamp in UTC.';
COMMENT ON COLUMN instances.last IS 'Event time of its last telemetry, as a timestamp in UTC.';
COMMENT ON COLUMN instances.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN instances.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN instances.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN instances.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN instances.first_s IS 'Event time of its first telemetry.';
COMMENT ON COLUMN instances.last_s IS 'Event time of its last telemetry.';
COMMENT ON COLUMN instances.periodic IS '1 when it sends heartbeats or periodic metrics, so that its silence means something; else 0.';

-- Latency histograms by step with what they speak of, without their bins.
CREATE VIEW latencies AS
SELECT to_timestamp(rollup.start_s) AS at, rollup.start_s, rollup.step_s, series.environment, series.service, series.model, series.signal, series.source, series.instance, series.censored, rollup.count, rollup.sum, rollup.min, rollup.max, CASE WHEN (rollup.count > 0) THEN rollup.sum / CAST(rollup.count AS NUMERIC) END AS mean 
FROM rollup JOIN series ON series.id = rollup.series_id;
COMMENT ON VIEW latencies IS 'Latency histograms by step with what they speak of, without their bins.';
COMMENT ON COLUMN latencies.at IS 'The start of the step as a timestamp in UTC.';
COMMENT ON COLUMN latencies.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN latencies.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN latencies.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN latencies.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN latencies.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN latencies.signal IS 'ttft, tpot, e2e or another latency of the wire.';
COMMENT ON COLUMN latencies.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN latencies.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN latencies.censored IS '1: waiting times of requests that ended past a deadline without a value; else 0.';
COMMENT ON COLUMN latencies.count IS 'Values in the step.';
COMMENT ON COLUMN latencies.sum IS 'Sum of the values.';
COMMENT ON COLUMN latencies.min IS 'Least value, where the sender knew it.';
COMMENT ON COLUMN latencies.max IS 'Greatest value, where the sender knew it.';
COMMENT ON COLUMN latencies.mean IS 'Mean of the values in seconds; NULL when there are none.';

-- Good and bad events of each objective by step, with timestamps.
CREATE VIEW slo_counts AS
SELECT to_timestamp(slo_count.start_s) AS at, slo_count.step_s, slo_count.start_s, slo_count.environment, slo_count.service, slo_count.model, slo_count.objective, slo_count.objective_hash, slo_count.good, slo_count.bad 
FROM slo_count;
COMMENT ON VIEW slo_counts IS 'Good and bad events of each objective by step, with timestamps.';
COMMENT ON COLUMN slo_counts.at IS 'The start of the step as a timestamp in UTC.';
COMMENT ON COLUMN slo_counts.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN slo_counts.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN slo_counts.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN slo_counts.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN slo_counts.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN slo_counts.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN slo_counts.objective_hash IS 'Hash over every field that decides good or bad.';
COMMENT ON COLUMN slo_counts.good IS 'Good events of the step.';
COMMENT ON COLUMN slo_counts.bad IS 'Bad events of the step.';

-- Gauges of each instance by step, with timestamps.
CREATE VIEW gauges AS
SELECT to_timestamp(gauge.start_s) AS at, gauge.step_s, gauge.start_s, gauge.environment, gauge.service, gauge.model, gauge.instance, gauge.name, gauge.attribute, gauge.min, gauge.max, gauge.mean, gauge.last, gauge.last_ns, gauge.samples 
FROM gauge;
COMMENT ON VIEW gauges IS 'Gauges of each instance by step, with timestamps.';
COMMENT ON COLUMN gauges.at IS 'The start of the step as a timestamp in UTC.';
COMMENT ON COLUMN gauges.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN gauges.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN gauges.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN gauges.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN gauges.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN gauges.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN gauges.name IS 'Name of the gauge: the metric''s without its namespace, dots as underscores.';
COMMENT ON COLUMN gauges.attribute IS 'Rank or signal the value speaks of; '''' when the gauge has none.';
COMMENT ON COLUMN gauges.min IS 'Least value seen in the step.';
COMMENT ON COLUMN gauges.max IS 'Greatest value seen in the step.';
COMMENT ON COLUMN gauges.mean IS 'Mean of the values seen in the step.';
COMMENT ON COLUMN gauges.last IS 'Value seen last in the step.';
COMMENT ON COLUMN gauges.last_ns IS 'Event time of the last value, in nanoseconds.';
COMMENT ON COLUMN gauges.samples IS 'Values seen in the step.';

-- Increase of counters of each instance by step, with timestamps.
CREATE VIEW counters AS
SELECT to_timestamp(counter.start_s) AS at, counter.step_s, counter.start_s, counter.environment, counter.service, counter.model, counter.instance, counter.source, counter.name, counter.attributes, counter.value 
FROM counter;
COMMENT ON VIEW counters IS 'Increase of counters of each instance by step, with timestamps.';
COMMENT ON COLUMN counters.at IS 'The start of the step as a timestamp in UTC.';
COMMENT ON COLUMN counters.step_s IS 'Length of the step; older rows are folded into longer steps.';
COMMENT ON COLUMN counters.start_s IS 'Start of the step; a multiple of step_s.';
COMMENT ON COLUMN counters.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN counters.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN counters.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN counters.instance IS 'service.instance.id of the sender.';
COMMENT ON COLUMN counters.source IS 'Who counted: proxy, middleware, engine or otel.';
COMMENT ON COLUMN counters.name IS 'Name of the counter: the metric''s without its namespace, dots as underscores.';
COMMENT ON COLUMN counters.attributes IS 'Outcome, class or type counted, as a JSON object; {} when none.';
COMMENT ON COLUMN counters.value IS 'Increase within the step.';
