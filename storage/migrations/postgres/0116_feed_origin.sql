-- +goose Up

-- Whether an item happened on another node, for lists of this node's own.
ALTER TABLE feed ADD COLUMN remote BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE feed SET remote = TRUE WHERE doc <> '' AND doc::json ->> 'node' IS NOT NULL;
CREATE INDEX feed_local ON feed (type, seq) WHERE visible AND NOT remote;

-- News of shops of other nodes, by their ActivityPub ids, and in which item of the feed each is shown.
CREATE TABLE feed_origin (
	uri   TEXT COLLATE "C" PRIMARY KEY,
	item  TEXT COLLATE "C" NOT NULL,
	host  TEXT COLLATE "C" NOT NULL,
	actor TEXT COLLATE "C" NOT NULL,
	type  TEXT COLLATE "C" NOT NULL,
	agent TEXT COLLATE "C" NOT NULL,
	keyid TEXT COLLATE "C" NOT NULL,
	state TEXT COLLATE "C" NOT NULL CHECK (state IN ('shown', 'hidden', 'withdrawn', 'blocked')),
	at    BIGINT NOT NULL,
	doc   TEXT COLLATE "C" NOT NULL
);
CREATE INDEX feed_origin_item ON feed_origin (item, at, uri);
CREATE INDEX feed_origin_host ON feed_origin (host, at);
CREATE INDEX feed_origin_actor ON feed_origin (actor, type, at);
CREATE INDEX feed_origin_agent ON feed_origin (agent) WHERE agent <> '';
CREATE INDEX feed_origin_key ON feed_origin (keyid) WHERE keyid <> '';
