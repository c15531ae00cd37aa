-- +goose Up

-- What is long of an old post, in a file of its month (part.go): part names it, as 202601; 0 where it is in the row.
ALTER TABLE post ADD COLUMN part BIGINT NOT NULL DEFAULT 0;

-- The files: up to which number of a post they were filled, and whether an operator took the month back.
CREATE TABLE part (
	month BIGINT PRIMARY KEY,
	upto  BIGINT NOT NULL,
	kept  BOOLEAN NOT NULL DEFAULT FALSE
);

-- Posts that a file still has and that no row refers to any more.
CREATE TABLE part_erase (
	seq   BIGINT PRIMARY KEY,
	month BIGINT NOT NULL,
	since BIGINT NOT NULL
);
