-- +goose Up

-- What a post of the fediverse says beside its text. An unlisted one is on the board and is neither boosted nor in the feed.
ALTER TABLE post ADD COLUMN unlisted INTEGER NOT NULL DEFAULT 0 CHECK (unlisted IN (0, 1));
ALTER TABLE post ADD COLUMN sensitive INTEGER NOT NULL DEFAULT 0 CHECK (sensitive IN (0, 1));
ALTER TABLE post ADD COLUMN warning TEXT NOT NULL DEFAULT '';
-- When its author last changed it, null for never, and how often.
ALTER TABLE post ADD COLUMN edited_at INTEGER;
ALTER TABLE post ADD COLUMN revisions INTEGER NOT NULL DEFAULT 0;
