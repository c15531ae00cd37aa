-- +goose Up

-- The name that a verified author gave itself; author_name is then the one that the node knows.
ALTER TABLE post ADD COLUMN author_claimed TEXT NOT NULL DEFAULT '';
