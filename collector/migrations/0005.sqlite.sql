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
	certified_rps DOUBLE, 
	refuted_rps DOUBLE, 
	peak_concurrency DOUBLE, 
	chosen_batch BIGINT, 
	feasible_min BIGINT, 
	feasible_max BIGINT, 
	efficient_batch BIGINT, 
	replicas BIGINT, 
	headroom DOUBLE, 
	result TEXT NOT NULL, 
	PRIMARY KEY (at_s, environment, service, model, kind, target), 
	CONSTRAINT capacity_result_certified_rps_finite CHECK ("certified_rps" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT capacity_result_refuted_rps_finite CHECK ("refuted_rps" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT capacity_result_peak_concurrency_finite CHECK ("peak_concurrency" BETWEEN -1e+308 AND 1e+308), 
	CONSTRAINT capacity_result_headroom_finite CHECK ("headroom" BETWEEN -1e+308 AND 1e+308)
)
 WITHOUT ROWID;

-- What firsttoken capacity found, with timestamps.
CREATE VIEW capacity_results AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', capacity_result.at_s, 'unixepoch') AS at, capacity_result.at_s, capacity_result.environment, capacity_result.service, capacity_result.model, capacity_result.kind, capacity_result.target, capacity_result.verdict, capacity_result.binding, capacity_result.certified_rps, capacity_result.refuted_rps, capacity_result.peak_concurrency, capacity_result.chosen_batch, capacity_result.feasible_min, capacity_result.feasible_max, capacity_result.efficient_batch, capacity_result.replicas, capacity_result.headroom 
FROM capacity_result;

-- What firsttoken capacity found last of each service, model and kind.
CREATE VIEW capacity_results_latest AS
SELECT strftime('%Y-%m-%dT%H:%M:%SZ', capacity_result.at_s, 'unixepoch') AS at, capacity_result.at_s, capacity_result.environment, capacity_result.service, capacity_result.model, capacity_result.kind, capacity_result.target, capacity_result.verdict, capacity_result.binding, capacity_result.certified_rps, capacity_result.refuted_rps, capacity_result.peak_concurrency, capacity_result.chosen_batch, capacity_result.feasible_min, capacity_result.feasible_max, capacity_result.efficient_batch, capacity_result.replicas, capacity_result.headroom 
FROM capacity_result 
WHERE NOT (EXISTS (SELECT * 
FROM capacity_result AS later 
WHERE later.environment = capacity_result.environment AND later.service = capacity_result.service AND later.model = capacity_result.model AND later.kind = capacity_result.kind AND later.at_s > capacity_result.at_s));
