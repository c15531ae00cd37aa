-- +goose Up

-- What other servers make a node keep is capped; rows of peers are evicted last:
-- see cap.go.
ALTER TABLE remote_key ADD COLUMN host TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE tombstone ADD COLUMN host TEXT COLLATE "C" NOT NULL DEFAULT '';
CREATE INDEX follower_host ON follower (host);
CREATE INDEX subscription_host ON subscription (host);
CREATE INDEX host_scheme_at ON host_scheme (at);

-- An activity whose job is done keeps its key, so that a repeat is known, and no
-- body. What waits is found by its length.
CREATE INDEX kept_waiting ON kept (length(body)) WHERE length(body) > 0;
UPDATE kept SET body = '' WHERE NOT EXISTS (SELECT 1 FROM job WHERE kind = 'process' AND state <> 'done');

-- Actor documents used to be kept whole; they are fetched again.
DELETE FROM remote_actor WHERE length(doc) > 16384;
