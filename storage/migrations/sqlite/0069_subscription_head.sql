-- +goose Up

-- How far the log of a followed board goes, to show how far behind this node is.
ALTER TABLE subscription ADD COLUMN head INTEGER NOT NULL DEFAULT 0;
