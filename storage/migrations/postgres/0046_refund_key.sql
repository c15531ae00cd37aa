-- +goose Up

-- round counts the idempotency keys of a refund: a refund that failed at the
-- provider is made again under the next one. unsure: a request under the present
-- key had no answer.
ALTER TABLE refund ADD COLUMN round  BIGINT  NOT NULL DEFAULT 0;
ALTER TABLE refund ADD COLUMN unsure BOOLEAN NOT NULL DEFAULT FALSE;
