-- +goose Up

-- Notices of bids have links that decide: who set the addresses may decide.
ALTER TABLE notify ADD COLUMN links BOOLEAN NOT NULL DEFAULT TRUE;
