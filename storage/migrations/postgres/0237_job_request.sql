-- +goose Up
-- The id of the request that caused a job.
ALTER TABLE job ADD COLUMN request TEXT COLLATE "C" NOT NULL DEFAULT '';
