-- +goose Up

-- How many messages of a thread its owner has read.
ALTER TABLE thread ADD COLUMN seen BIGINT NOT NULL DEFAULT 0;
UPDATE thread SET seen = messages - unread;
CREATE INDEX thread_new ON thread (handle) WHERE unread > 0 AND messages > seen;
