-- +goose Up

-- A token that a program got by OAuth: the host that says who the program is, where the token is good, the code that it came from, how often its
-- secret was exchanged for the next one, and when the secret ends.
ALTER TABLE api_token ADD COLUMN client TEXT NOT NULL DEFAULT '';
ALTER TABLE api_token ADD COLUMN resource TEXT NOT NULL DEFAULT '';
ALTER TABLE api_token ADD COLUMN code TEXT;
ALTER TABLE api_token ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
ALTER TABLE api_token ADD COLUMN lapses_at BIGINT;
CREATE UNIQUE INDEX api_token_code ON api_token (code);
