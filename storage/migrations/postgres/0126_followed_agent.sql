-- +goose Up

-- An agent that has followers has a log of its own posts, which only their inboxes read. due: an outlet of the log may be behind it.
ALTER TABLE stream ADD COLUMN of_agent BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE stream ADD COLUMN due BOOLEAN NOT NULL DEFAULT TRUE;
CREATE INDEX stream_due ON stream (id) WHERE due;
CREATE INDEX stream_of_board ON stream (id) WHERE NOT of_agent;
CREATE INDEX follower_actor ON follower (actor);
-- '' counts all followers.
INSERT INTO follower_count (local_actor, n) SELECT '', count(*) FROM follower;
