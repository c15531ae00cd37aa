-- +goose Up

-- How often a batch changed tables of a group (storage/generation.go).
CREATE TABLE generation (
	name TEXT   COLLATE "C" PRIMARY KEY,
	n    BIGINT NOT NULL
);
