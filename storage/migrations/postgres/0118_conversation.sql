-- +goose Up

-- What a post of the fediverse says beside its text. An unlisted one is on the board and is neither boosted nor in the feed.
ALTER TABLE post ADD COLUMN unlisted BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE post ADD COLUMN sensitive BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE post ADD COLUMN warning TEXT COLLATE "C" NOT NULL DEFAULT '';
-- When its author last changed it, null for never, and how often.
ALTER TABLE post ADD COLUMN edited_at BIGINT;
ALTER TABLE post ADD COLUMN revisions BIGINT NOT NULL DEFAULT 0;
