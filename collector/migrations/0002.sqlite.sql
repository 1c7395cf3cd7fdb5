-- What each group commit added, in the order of the commits, so that every collector on a shared database takes in what the others counted. PostgreSQL alone; rows of the last minutes.
CREATE TABLE journal (
	seq BIGINT NOT NULL, 
	stamp BIGINT NOT NULL, 
	at_s BIGINT NOT NULL, 
	payload BLOB NOT NULL, 
	PRIMARY KEY (seq)
)
 WITHOUT ROWID;

-- Which of the collectors on a shared database evaluates and notifies, and until when. PostgreSQL alone; one row.
CREATE TABLE leader (
	role TEXT NOT NULL, 
	collector TEXT NOT NULL, 
	term BIGINT NOT NULL, 
	until_s BIGINT NOT NULL, 
	PRIMARY KEY (role)
)
 WITHOUT ROWID;

-- Latency percentiles of rolling windows, with timestamps.
CREATE VIEW percentiles AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', percentile.at_s, 'unixepoch') AS at, CASE WHEN (percentile.window_s % 86400 = 0) THEN CAST(percentile.window_s / 86400 AS TEXT) || 'd' WHEN (percentile.window_s % 3600 = 0) THEN CAST(percentile.window_s / 3600 AS TEXT) || 'h' WHEN (percentile.window_s % 60 = 0) THEN CAST(percentile.window_s / 60 AS TEXT) || 'm' ELSE CAST(percentile.window_s / 1 AS TEXT) || 's' END AS window_label, percentile.at_s, percentile.environment, percentile.service, percentile.model, percentile.signal, percentile.source, percentile.window_s, percentile.count, percentile.censored, percentile.p50, percentile.p90, percentile.p95, percentile.p99, percentile.p999, percentile.max, percentile.at_least, percentile.rel_error, percentile.coverage 
FROM percentile;

-- Latency percentiles of rolling windows, of the last evaluation alone.
CREATE VIEW percentiles_latest AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', percentile.at_s, 'unixepoch') AS at, CASE WHEN (percentile.window_s % 86400 = 0) THEN CAST(percentile.window_s / 86400 AS TEXT) || 'd' WHEN (percentile.window_s % 3600 = 0) THEN CAST(percentile.window_s / 3600 AS TEXT) || 'h' WHEN (percentile.window_s % 60 = 0) THEN CAST(percentile.window_s / 60 AS TEXT) || 'm' ELSE CAST(percentile.window_s / 1 AS TEXT) || 's' END AS window_label, percentile.at_s, percentile.environment, percentile.service, percentile.model, percentile.signal, percentile.source, percentile.window_s, percentile.count, percentile.censored, percentile.p50, percentile.p90, percentile.p95, percentile.p99, percentile.p999, percentile.max, percentile.at_least, percentile.rel_error, percentile.coverage 
FROM percentile 
WHERE percentile.at_s = (SELECT max(percentile.at_s) AS max_1 
FROM percentile);

-- Burn rates of the objectives, with timestamps.
CREATE VIEW burn_rates AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', burn_rate.at_s, 'unixepoch') AS at, CASE WHEN (burn_rate.window_s % 86400 = 0) THEN CAST(burn_rate.window_s / 86400 AS TEXT) || 'd' WHEN (burn_rate.window_s % 3600 = 0) THEN CAST(burn_rate.window_s / 3600 AS TEXT) || 'h' WHEN (burn_rate.window_s % 60 = 0) THEN CAST(burn_rate.window_s / 60 AS TEXT) || 'm' ELSE CAST(burn_rate.window_s / 1 AS TEXT) || 's' END AS window_label, burn_rate.at_s, burn_rate.environment, burn_rate.service, burn_rate.model, burn_rate.objective, burn_rate.window_s, burn_rate.good, burn_rate.bad, burn_rate.burn, burn_rate.coverage, burn_rate.basis, burn_rate.unsure 
FROM burn_rate;

-- Burn rates of the objectives, of the last evaluation alone.
CREATE VIEW burn_rates_latest AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', burn_rate.at_s, 'unixepoch') AS at, CASE WHEN (burn_rate.window_s % 86400 = 0) THEN CAST(burn_rate.window_s / 86400 AS TEXT) || 'd' WHEN (burn_rate.window_s % 3600 = 0) THEN CAST(burn_rate.window_s / 3600 AS TEXT) || 'h' WHEN (burn_rate.window_s % 60 = 0) THEN CAST(burn_rate.window_s / 60 AS TEXT) || 'm' ELSE CAST(burn_rate.window_s / 1 AS TEXT) || 's' END AS window_label, burn_rate.at_s, burn_rate.environment, burn_rate.service, burn_rate.model, burn_rate.objective, burn_rate.window_s, burn_rate.good, burn_rate.bad, burn_rate.burn, burn_rate.coverage, burn_rate.basis, burn_rate.unsure 
FROM burn_rate 
WHERE burn_rate.at_s = (SELECT max(burn_rate.at_s) AS max_1 
FROM burn_rate);

-- Error budgets of the objectives, with timestamps.
CREATE VIEW budgets AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', budget.at_s, 'unixepoch') AS at, budget.at_s, budget.environment, budget.service, budget.model, budget.objective, budget.good, budget.bad, budget.allowance, budget.remaining, budget.exhausted_in_s, budget.coverage, budget.basis 
FROM budget;

-- Error budgets of the objectives, of the last evaluation alone.
CREATE VIEW budgets_latest AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', budget.at_s, 'unixepoch') AS at, budget.at_s, budget.environment, budget.service, budget.model, budget.objective, budget.good, budget.bad, budget.allowance, budget.remaining, budget.exhausted_in_s, budget.coverage, budget.basis 
FROM budget 
WHERE budget.at_s = (SELECT max(budget.at_s) AS max_1 
FROM budget);

-- The present state of each alert, with timestamps.
CREATE VIEW alerts AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', alert.since_s, 'unixepoch') AS since, strftime('%Y-%m-%dT%H:%M:%SZ', alert.fired_s, 'unixepoch') AS fired, alert.environment, alert.service, alert.name, alert.model, alert.objective, alert.tier, alert.state, alert.since_s, alert.severity, alert.notify, alert.fired_s, alert.labels, alert.annotations 
FROM alert;

-- Every transition of every alert, with timestamps and how long a firing lasted.
CREATE VIEW alert_events AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', alert_event.at_s, 'unixepoch') AS at, alert_event.at_s, alert_event.environment, alert_event.service, alert_event.name, alert_event.model, alert_event.objective, alert_event.tier, alert_event.state, alert_event.fired_s, alert_event.labels, alert_event.annotations, CASE WHEN (alert_event.state = 'resolved') THEN alert_event.at_s - alert_event.fired_s END AS lasted_s 
FROM alert_event;

-- Every sender of telemetry, with timestamps.
CREATE VIEW instances AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', instance.first_s, 'unixepoch') AS first, strftime('%Y-%m-%dT%H:%M:%SZ', instance.last_s, 'unixepoch') AS last, instance.environment, instance.service, instance.instance, instance.source, instance.first_s, instance.last_s, instance.periodic 
FROM instance;

-- Latency histograms by step with what they speak of, without their bins.
CREATE VIEW latencies AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', rollup.start_s, 'unixepoch') AS at, rollup.start_s, rollup.step_s, series.environment, series.service, series.model, series.signal, series.source, series.instance, series.censored, rollup.count, rollup.sum, rollup.min, rollup.max, CASE WHEN (rollup.count > 0) THEN rollup.sum / (rollup.count + 0.0) END AS mean 
FROM rollup JOIN series ON series.id = rollup.series_id;

-- Good and bad events of each objective by step, with timestamps.
CREATE VIEW slo_counts AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', slo_count.start_s, 'unixepoch') AS at, slo_count.step_s, slo_count.start_s, slo_count.environment, slo_count.service, slo_count.model, slo_count.objective, slo_count.objective_hash, slo_count.good, slo_count.bad 
FROM slo_count;

-- Gauges of each instance by step, with timestamps.
CREATE VIEW gauges AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', gauge.start_s, 'unixepoch') AS at, gauge.step_s, gauge.start_s, gauge.environment, gauge.service, gauge.model, gauge.instance, gauge.name, gauge.attribute, gauge.min, gauge.max, gauge.mean, gauge.last, gauge.last_ns, gauge.samples 
FROM gauge;

-- Increase of counters of each instance by step, with timestamps.
CREATE VIEW counters AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', counter.start_s, 'unixepoch') AS at, counter.step_s, counter.start_s, counter.environment, counter.service, counter.model, counter.instance, counter.source, counter.name, counter.attributes, counter.value 
FROM counter;
