-- +goose Up

-- The profile's shop took orders when its deletion began.
ALTER TABLE leaving ADD COLUMN orders BOOLEAN NOT NULL DEFAULT FALSE;
