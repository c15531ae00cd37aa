-- +goose Up

-- The profile's shop took orders when its deletion began.
ALTER TABLE leaving ADD COLUMN orders INTEGER NOT NULL DEFAULT 0;
