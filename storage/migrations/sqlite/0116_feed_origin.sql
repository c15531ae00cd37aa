-- +goose Up

-- Whether an item happened on another node, for lists of this node's own.
ALTER TABLE feed ADD COLUMN remote INTEGER NOT NULL DEFAULT 0 CHECK (remote IN (0, 1));
UPDATE feed SET remote = 1 WHERE doc <> '' AND doc ->> '$.node' IS NOT NULL;
CREATE INDEX feed_local ON feed (type, seq) WHERE visible AND NOT remote;

-- News of shops of other nodes, by their ActivityPub ids, and in which item of the feed each is shown.
CREATE TABLE feed_origin (
	uri   TEXT    PRIMARY KEY,
	item  TEXT    NOT NULL,
	host  TEXT    NOT NULL,
	actor TEXT    NOT NULL,
	type  TEXT    NOT NULL,
	agent TEXT    NOT NULL,
	keyid TEXT    NOT NULL,
	state TEXT    NOT NULL CHECK (state IN ('shown', 'hidden', 'withdrawn', 'blocked')),
	at    INTEGER NOT NULL,
	doc   TEXT    NOT NULL
) STRICT;
CREATE INDEX feed_origin_item ON feed_origin (item, at, uri);
CREATE INDEX feed_origin_host ON feed_origin (host, at);
CREATE INDEX feed_origin_actor ON feed_origin (actor, type, at);
CREATE INDEX feed_origin_agent ON feed_origin (agent) WHERE agent <> '';
CREATE INDEX feed_origin_key ON feed_origin (keyid) WHERE keyid <> '';
