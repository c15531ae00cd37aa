-- +goose Up

-- Bids and meeting requests are tasks too: their ids are thread_id, with first = 0, until they have not changed for some time.
ALTER TABLE exchange ADD COLUMN ends_at INTEGER;
CREATE INDEX exchange_ends ON exchange (ends_at) WHERE ends_at IS NOT NULL;
