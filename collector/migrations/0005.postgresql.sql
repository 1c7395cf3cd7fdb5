-- What firsttoken capacity found, one row a run that was told to keep it (--database). The collector only reads it.
CREATE TABLE capacity_result (
	at_s BIGINT NOT NULL, 
	environment TEXT NOT NULL, 
	service TEXT NOT NULL, 
	model TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	target TEXT NOT NULL, 
	verdict TEXT NOT NULL, 
	binding TEXT NOT NULL, 
	certified_rps DOUBLE PRECISION, 
	refuted_rps DOUBLE PRECISION, 
	peak_concurrency DOUBLE PRECISION, 
	chosen_batch BIGINT, 
	feasible_min BIGINT, 
	feasible_max BIGINT, 
	efficient_batch BIGINT, 
	replicas BIGINT, 
	headroom DOUBLE PRECISION, 
	result TEXT NOT NULL, 
	PRIMARY KEY (at_s, environment, service, model, kind, target), 
	CONSTRAINT capacity_result_certified_rps_finite CHECK ("certified_rps" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT capacity_result_refuted_rps_finite CHECK ("refuted_rps" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT capacity_result_peak_concurrency_finite CHECK ("peak_concurrency" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT capacity_result_headroom_finite CHECK ("headroom" BETWEEN -1e+308 AND 1e+308)
);
COMMENT ON TABLE capacity_result IS 'What firsttoken capacity found, one row a run that was told to keep it (--database). The collector only reads it.';
COMMENT ON COLUMN capacity_result.at_s IS 'When the run ended.';
COMMENT ON COLUMN capacity_result.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN capacity_result.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN capacity_result.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN capacity_result.kind IS 'certify, size or batch.';
COMMENT ON COLUMN capacity_result.target IS 'URL that was asked, without credentials and query; '''' where no server was.';
COMMENT ON COLUMN capacity_result.verdict IS 'certified, not_certifiable, sized or another, as the result says it.';
COMMENT ON COLUMN capacity_result.binding IS 'Objective that limits; '''' when unknown.';
COMMENT ON COLUMN capacity_result.certified_rps IS 'Requests a second at which the objectives are shown to be kept.';
COMMENT ON COLUMN capacity_result.refuted_rps IS 'Requests a second at which they are shown not to be kept.';
COMMENT ON COLUMN capacity_result.peak_concurrency IS 'Mean requests in the system at the certified rate.';
COMMENT ON COLUMN capacity_result.chosen_batch IS 'Largest batch whose p95 keeps the objectives.';
COMMENT ON COLUMN capacity_result.feasible_min IS 'Least batch that keeps them.';
COMMENT ON COLUMN capacity_result.feasible_max IS 'Largest batch that keeps them.';
COMMENT ON COLUMN capacity_result.efficient_batch IS 'Least batch within 1 % of the chosen one''s capacity.';
COMMENT ON COLUMN capacity_result.replicas IS 'Servers that the demand needs, spare ones included.';
COMMENT ON COLUMN capacity_result.headroom IS 'Share of capacity that the peak leaves free (certify), or that is held back (size).';
COMMENT ON COLUMN capacity_result.result IS 'The whole result, as the JSON that --json writes.';

-- What firsttoken capacity found, with timestamps.
CREATE VIEW capacity_results AS
SELECT to_timestamp(capacity_result.at_s) AS at, capacity_result.at_s, capacity_result.environment, capacity_result.service, capacity_result.model, capacity_result.kind, capacity_result.target, capacity_result.verdict, capacity_result.binding, capacity_result.certified_rps, capacity_result.refuted_rps, capacity_result.peak_concurrency, capacity_result.chosen_batch, capacity_result.feasible_min, capacity_result.feasible_max, capacity_result.efficient_batch, capacity_result.replicas, capacity_result.headroom 
FROM capacity_result;
COMMENT ON VIEW capacity_results IS 'What firsttoken capacity found, with timestamps.';
COMMENT ON COLUMN capacity_results.at IS 'When the run ended, as a timestamp in UTC.';
COMMENT ON COLUMN capacity_results.at_s IS 'When the run ended.';
COMMENT ON COLUMN capacity_results.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN capacity_results.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN capacity_results.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN capacity_results.kind IS 'certify, size or batch.';
COMMENT ON COLUMN capacity_results.target IS 'URL that was asked, without credentials and query; '''' where no server was.';
COMMENT ON COLUMN capacity_results.verdict IS 'certified, not_certifiable, sized or another, as the result says it.';
COMMENT ON COLUMN capacity_results.binding IS 'Objective that limits; '''' when unknown.';
COMMENT ON COLUMN capacity_results.certified_rps IS 'Requests a second at which the objectives are shown to be kept.';
COMMENT ON COLUMN capacity_results.refuted_rps IS 'Requests a second at which they are shown not to be kept.';
COMMENT ON COLUMN capacity_results.peak_concurrency IS 'Mean requests in the system at the certified rate.';
COMMENT ON COLUMN capacity_results.chosen_batch IS 'Largest batch whose p95 keeps the objectives.';
COMMENT ON COLUMN capacity_results.feasible_min IS 'Least batch that keeps them.';
COMMENT ON COLUMN capacity_results.feasible_max IS 'Largest batch that keeps them.';
COMMENT ON COLUMN capacity_results.efficient_batch IS 'Least batch within 1 % of the chosen one''s capacity.';
COMMENT ON COLUMN capacity_results.replicas IS 'Servers that the demand needs, spare ones included.';
COMMENT ON COLUMN capacity_results.headroom IS 'Share of capacity that the peak leaves free (certify), or that is held back (size).';

-- What firsttoken capacity found last of each service, model and kind.
CREATE VIEW capacity_results_latest AS
SELECT to_timestamp(capacity_result.at_s) AS at, capacity_result.at_s, capacity_result.environment, capacity_result.service, capacity_result.model, capacity_result.kind, capacity_result.target, capacity_result.verdict, capacity_result.binding, capacity_result.certified_rps, capacity_result.refuted_rps, capacity_result.peak_concurrency, capacity_result.chosen_batch, capacity_result.feasible_min, capacity_result.feasible_max, capacity_result.efficient_batch, capacity_result.replicas, capacity_result.headroom 
FROM capacity_result 
WHERE NOT (EXISTS (SELECT * 
FROM capacity_result AS later 
WHERE later.environment = capacity_result.environment AND later.service = capacity_result.service AND later.model = capacity_result.model AND later.kind = capacity_result.kind AND later.at_s > capacity_result.at_s));
COMMENT ON VIEW capacity_results_latest IS 'What firsttoken capacity found last of each service, model and kind.';
COMMENT ON COLUMN capacity_results_latest.at IS 'When the run ended, as a timestamp in UTC.';
COMMENT ON COLUMN capacity_results_latest.at_s IS 'When the run ended.';
COMMENT ON COLUMN capacity_results_latest.environment IS 'Deployment environment; '''' when unset.';
COMMENT ON COLUMN capacity_results_latest.service IS 'OpenTelemetry service.name.';
COMMENT ON COLUMN capacity_results_latest.model IS 'Model name; unknown, other or * (all the models of an objective, or of a latency that has several).';
COMMENT ON COLUMN capacity_results_latest.kind IS 'certify, size or batch.';
COMMENT ON COLUMN capacity_results_latest.target IS 'URL that was asked, without credentials and query; '''' where no server was.';
COMMENT ON COLUMN capacity_results_latest.verdict IS 'certified, not_certifiable, sized or another, as the result says it.';
COMMENT ON COLUMN capacity_results_latest.binding IS 'Objective that limits; '''' when unknown.';
COMMENT ON COLUMN capacity_results_latest.certified_rps IS 'Requests a second at which the objectives are shown to be kept.';
COMMENT ON COLUMN capacity_results_latest.refuted_rps IS 'Requests a second at which they are shown not to be kept.';
COMMENT ON COLUMN capacity_results_latest.peak_concurrency IS 'Mean requests in the system at the certified rate.';
COMMENT ON COLUMN capacity_results_latest.chosen_batch IS 'Largest batch whose p95 keeps the objectives.';
COMMENT ON COLUMN capacity_results_latest.feasible_min IS 'Least batch that keeps them.';
COMMENT ON COLUMN capacity_results_latest.feasible_max IS 'Largest batch that keeps them.';
COMMENT ON COLUMN capacity_results_latest.efficient_batch IS 'Least batch within 1 % of the chosen one''s capacity.';
COMMENT ON COLUMN capacity_results_latest.replicas IS 'Servers that the demand needs, spare ones included.';
COMMENT ON COLUMN capacity_results_latest.headroom IS 'Share of capacity that the peak leaves free (certify), or that is held back (size).';

-- What columns of alerts hold, in today's words.
COMMENT ON COLUMN alert.tier IS 'What tells alerts of one name apart: a burn''s tier (fast, medium, slow, long or a name given), the share or the budget left from which it is told (90%), a drift''s signal, partial for lost instances; '''' where there is one.';
COMMENT ON COLUMN alert.state IS 'pending (a burn that a page holds back or of which the short window is fine, a state that is too young), firing or resolved.';
COMMENT ON COLUMN alert_event.tier IS 'As in alert.';
COMMENT ON COLUMN alerts.tier IS 'What tells alerts of one name apart: a burn''s tier (fast, medium, slow, long or a name given), the share or the budget left from which it is told (90%), a drift''s signal, partial for lost instances; '''' where there is one.';
COMMENT ON COLUMN alerts.state IS 'pending (a burn that a page holds back or of which the short window is fine, a state that is too young), firing or resolved.';
COMMENT ON COLUMN alert_events.tier IS 'As in alert.';
