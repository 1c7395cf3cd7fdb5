-- Latencies whose p95 shifted against its own past at that time of day, from when to when.
CREATE TABLE drift (
	since_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	signal TEXT NOT NULL, 
	source TEXT NOT NULL, 
	effect DOUBLE PRECISION NOT NULL, 
	before_s DOUBLE PRECISION NOT NULL, 
	after_s DOUBLE PRECISION NOT NULL, 
	count BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	until_s BIGINT, 
	PRIMARY KEY (since_s, environment, service, model, signal, source), 
	CONSTRAINT drift_effect_finite CHECK ("effect" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT drift_before_s_finite CHECK ("before_s" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT drift_after_s_finite CHECK ("after_s" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE drift IS 'Latencies whose p95 shifted against its own past at that time of day, from when to when.';
COMMENT ON COLUMN drift.since_s IS 'When the shift began.';
COMMENT ON COLUMN drift.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN drift.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN drift.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN drift.signal IS 'ttft, tpot or e2e.';
COMMENT ON COLUMN drift.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN drift.effect IS 'Relative change against what is usual then: 0.25 is a quarter longer.';
COMMENT ON COLUMN drift.before_s IS 'What was usual when it began.';
COMMENT ON COLUMN drift.after_s IS 'What became of that.';
COMMENT ON COLUMN drift.count IS 'Requests that it was seen in.';
COMMENT ON COLUMN drift.kind IS 'Whose doing: server, mix (of prompt lengths), or unknown.';
COMMENT ON COLUMN drift.until_s IS 'When it had ended, or was the new normal; NULL while it lasts.';

-- Latencies that shifted against their own past, with timestamps.
CREATE VIEW drifts AS
SELECT to_timestamp(drift.since_s) AS since, to_timestamp(drift.until_s) AS until, drift.since_s, drift.environment, drift.service, drift.model, drift.signal, drift.source, drift.effect, drift.before_s, drift.after_s, drift.count, drift.kind, drift.until_s 
FROM drift;
COMMENT ON VIEW drifts IS 'Latencies that shifted against their own past, with timestamps.';
COMMENT ON COLUMN drifts.since IS 'When the shift began, as a timestamp in UTC.';
COMMENT ON COLUMN drifts.until IS 'When it had ended, as a timestamp in UTC; NULL while it lasts.';
COMMENT ON COLUMN drifts.since_s IS 'When the shift began.';
COMMENT ON COLUMN drifts.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN drifts.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN drifts.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN drifts.signal IS 'ttft, tpot or e2e.';
COMMENT ON COLUMN drifts.source IS 'Who measured: proxy, middleware, engine or otel.';
COMMENT ON COLUMN drifts.effect IS 'Relative change against what is usual then: 0.25 is a quarter longer.';
COMMENT ON COLUMN drifts.before_s IS 'What was usual when it began.';
COMMENT ON COLUMN drifts.after_s IS 'What became of that.';
COMMENT ON COLUMN drifts.count IS 'Requests that it was seen in.';
COMMENT ON COLUMN drifts.kind IS 'Whose doing: server, mix (of prompt lengths), or unknown.';
COMMENT ON COLUMN drifts.until_s IS 'When it had ended, or was the new normal; NULL while it lasts.';
