-- +goose Up

-- Counts that are kept, since what they count is asked for again and again and
-- may be much: the visible posts below the root of a thread, the followers of an
-- actor.
ALTER TABLE post ADD COLUMN thread_count BIGINT NOT NULL DEFAULT 0;
UPDATE post SET thread_count = t.n FROM (SELECT root, count(*) AS n FROM post WHERE root IS NOT NULL AND state = 'visible' GROUP BY root) t
	WHERE post.id = t.root;

CREATE TABLE follower_count (
	local_actor TEXT COLLATE "C" PRIMARY KEY,
	n           BIGINT NOT NULL
);
INSERT INTO follower_count (local_actor, n) SELECT local_actor, count(*) FROM follower GROUP BY local_actor;

-- The metrics count outlets state by state, and look for the one that is furthest
-- behind.
DROP INDEX outlet_behind;
CREATE INDEX outlet_state ON outlet (board, state, cursor, inbox);

-- The followers that an inbox delivers to, for the end of inboxes that are given up.
CREATE INDEX follower_inbox ON follower (local_actor, (CASE WHEN shared_inbox <> '' THEN shared_inbox ELSE inbox END));

-- The jobs of a lane that wait, blocked or not: how many, and the oldest blocked one.
DROP INDEX job_lane;
CREATE INDEX job_lane ON job (lane, blocked, id) WHERE blocked IS NOT NULL;
