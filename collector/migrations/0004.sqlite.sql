-- Why each burn alert pended or fired, as far as the evidence tells: one row for each time that it did, kept up to date while it lasts. The same in words is the annotation cause of alert and alert_event.
CREATE TABLE alert_cause (
	since_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	name TEXT NOT NULL, 
	model TEXT NOT NULL, 
	objective TEXT NOT NULL, 
	tier TEXT NOT NULL, 
	at_s BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	confidence DOUBLE NOT NULL, 
	instance TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	length_s BIGINT NOT NULL, 
	before_s BIGINT NOT NULL, 
	PRIMARY KEY (since_s, environment, service, name, model, objective, tier), 
	CONSTRAINT alert_cause_confidence_finite CHECK ("confidence" BETWEEN -1e+308 AND 1e+308)
)
 WITHOUT ROWID;

-- Why each burn alert pended or fired, with timestamps.
CREATE VIEW alert_causes AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', alert_cause.since_s, 'unixepoch') AS since, strftime('%Y-%m-%dT%H:%M:%SZ', alert_cause.at_s, 'unixepoch') AS at, alert_cause.since_s, alert_cause.environment, alert_cause.service, alert_cause.name, alert_cause.model, alert_cause.objective, alert_cause.tier, alert_cause.at_s, alert_cause.kind, alert_cause.confidence, alert_cause.instance, alert_cause.evidence, alert_cause.length_s, alert_cause.before_s 
FROM alert_cause;
