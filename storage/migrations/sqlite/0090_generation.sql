-- +goose Up

-- How often a batch changed tables of a group (storage/generation.go).
CREATE TABLE generation (
	name TEXT    PRIMARY KEY,
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
