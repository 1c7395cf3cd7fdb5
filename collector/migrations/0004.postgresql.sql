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
	confidence DOUBLE PRECISION NOT NULL, 
	instance TEXT NOT NULL, 
	evidence TEXT NOT NULL, 
	length_s BIGINT NOT NULL, 
	before_s BIGINT NOT NULL, 
	PRIMARY KEY (since_s, environment, service, name, model, objective, tier), 
	CONSTRAINT alert_cause_confidence_finite CHECK ("confidence" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE alert_cause IS 'Why each burn alert pended or fired, as far as the evidence tells: one row for each time that it did, kept up to date while it lasts. The same in words is the annotation cause of alert and alert_event.';
COMMENT ON COLUMN alert_cause.since_s IS 'When the alert left ok.';
COMMENT ON COLUMN alert_cause.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN alert_cause.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN alert_cause.name IS 'Alert name.';
COMMENT ON COLUMN alert_cause.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN alert_cause.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN alert_cause.tier IS 'Burn tier.';
COMMENT ON COLUMN alert_cause.at_s IS 'Moment that the evidence reaches to.';
COMMENT ON COLUMN alert_cause.kind IS 'What burns the budget, in one word: decode_slower, errors ... (docs/numbers.md), or unknown.';
COMMENT ON COLUMN alert_cause.confidence IS 'How sure that is, 0 to 1; of unknown, how sure the nearest was.';
COMMENT ON COLUMN alert_cause.instance IS 'The one instance that it is alone with; '''' when it is of all together.';
COMMENT ON COLUMN alert_cause.evidence IS 'What speaks for it, as a JSON array of sentences.';
COMMENT ON COLUMN alert_cause.length_s IS 'Length of the stretch of time before at_s that was looked at.';
COMMENT ON COLUMN alert_cause.before_s IS 'End of the stretch of the same length that it was compared with, in which nothing burned.';

-- Why each burn alert pended or fired, with timestamps.
CREATE VIEW alert_causes AS
SELECT to_timestamp(alert_cause.since_s) AS since, to_timestamp(alert_cause.at_s) AS at, alert_cause.since_s, alert_cause.environment, alert_cause.service, alert_cause.name, alert_cause.model, alert_cause.objective, alert_cause.tier, alert_cause.at_s, alert_cause.kind, alert_cause.confidence, alert_cause.instance, alert_cause.evidence, alert_cause.length_s, alert_cause.before_s 
FROM alert_cause;
COMMENT ON VIEW alert_causes IS 'Why each burn alert pended or fired, with timestamps.';
COMMENT ON COLUMN alert_causes.since IS 'When the alert left ok, as a timestamp in UTC.';
COMMENT ON COLUMN alert_causes.at IS 'Moment that the evidence reaches to, as a timestamp in UTC.';
COMMENT ON COLUMN alert_causes.since_s IS 'When the alert left ok.';
COMMENT ON COLUMN alert_causes.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN alert_causes.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN alert_causes.name IS 'Alert name.';
COMMENT ON COLUMN alert_causes.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN alert_causes.objective IS 'Name of the objective in slo.yaml.';
COMMENT ON COLUMN alert_causes.tier IS 'Burn tier.';
COMMENT ON COLUMN alert_causes.at_s IS 'Moment that the evidence reaches to.';
COMMENT ON COLUMN alert_causes.kind IS 'What burns the budget, in one word: decode_slower, errors ... (docs/numbers.md), or unknown.';
COMMENT ON COLUMN alert_causes.confidence IS 'How sure that is, 0 to 1; of unknown, how sure the nearest was.';
COMMENT ON COLUMN alert_causes.instance IS 'The one instance that it is alone with; '''' when it is of all together.';
COMMENT ON COLUMN alert_causes.evidence IS 'What speaks for it, as a JSON array of sentences.';
COMMENT ON COLUMN alert_causes.length_s IS 'Length of the stretch of time before at_s that was looked at.';
COMMENT ON COLUMN alert_causes.before_s IS 'End of the stretch of the same length that it was compared with, in which nothing burned.';
