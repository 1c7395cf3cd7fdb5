-- Latencies whose p95 shifted against its own past at that time of day, from when to when.
CREATE TABLE drift (
	since_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	signal TEXT NOT NULL, 
	source TEXT NOT NULL, 
	effect DOUBLE NOT NULL, 
	before_s DOUBLE NOT NULL, 
	after_s DOUBLE NOT NULL, 
	count BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	until_s BIGINT, 
	PRIMARY KEY (since_s, environment, service, model, signal, source), 
	CONSTRAINT drift_effect_finite CHECK ("effect" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT drift_before_s_finite CHECK ("before_s" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT drift_after_s_finite CHECK ("after_s" BETWEEN -1e+308 AND 1e+308)
)
 WITHOUT ROWID;

-- Latencies that shifted against their own past, with timestamps.
CREATE VIEW drifts AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', drift.since_s, 'unixepoch') AS since, strftime('%Y-%m-%dT%H:%M:%SZ', drift.until_s, 'unixepoch') AS until, drift.since_s, drift.environment, drift.service, drift.model, drift.signal, drift.source, drift.effect, drift.before_s, drift.after_s, drift.count, drift.kind, drift.until_s 
FROM drift;
