-- +goose Up

-- A job that has to wait for its lane is blocked and not looked at: a claim sees
-- only jobs that could run, whatever waits after them. A lane has a row while one
-- of its jobs holds it: is due, runs, or waits for another try. A row without job
-- is free for the oldest job that is blocked.
CREATE TABLE lane (
	name TEXT COLLATE "C" PRIMARY KEY,
	job  BIGINT
);
CREATE UNIQUE INDEX lane_job ON lane (job) WHERE job IS NOT NULL;
CREATE INDEX lane_free ON lane (name) WHERE job IS NULL;

-- 0: may run when it is due; 1: waits for its lane; NULL: done or dead.
ALTER TABLE job ADD COLUMN blocked SMALLINT CHECK (blocked IN (0, 1));
UPDATE job SET blocked = 0 WHERE state = 'waiting';
INSERT INTO lane (name, job) SELECT lane, min(id) FROM job
	WHERE state = 'waiting' AND lane IS NOT NULL AND (owner IS NOT NULL OR attempt > 0) GROUP BY lane;
DROP INDEX job_due;
DROP INDEX job_lane;
DROP INDEX job_leased;
CREATE INDEX job_due ON job (run_at, id) WHERE blocked = 0;
CREATE INDEX job_lane ON job (lane, id) WHERE blocked = 1;
