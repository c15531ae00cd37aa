-- +goose Up

-- Notices of bids have links that decide: who set the addresses may decide.
ALTER TABLE notify ADD COLUMN links INTEGER NOT NULL DEFAULT 1 CHECK (links IN (0, 1));
