-- +goose Up
-- The span of the request that caused a job; the request that caused an entry of a log, and its span: what delivers them names it.
ALTER TABLE job ADD COLUMN trace BLOB;
ALTER TABLE log ADD COLUMN request TEXT;
ALTER TABLE log ADD COLUMN trace BLOB;
