-- +goose Up

-- round counts the idempotency keys of a refund: a refund that failed at the
-- provider is made again under the next one. unsure: a request under the present
-- key had no answer.
ALTER TABLE refund ADD COLUMN round  INTEGER NOT NULL DEFAULT 0;
ALTER TABLE refund ADD COLUMN unsure INTEGER NOT NULL DEFAULT 0 CHECK (unsure IN (0, 1));
