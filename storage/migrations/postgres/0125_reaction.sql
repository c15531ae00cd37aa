-- +goose Up

-- What actors of other servers did with posts of this node. A key is one actor's like or boost of one post, or one quote of it.
ALTER TABLE post ADD COLUMN likes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE post ADD COLUMN shares BIGINT NOT NULL DEFAULT 0;
ALTER TABLE post ADD COLUMN quotes BIGINT NOT NULL DEFAULT 0;
CREATE TABLE reaction (
	key     TEXT COLLATE "C" PRIMARY KEY,
	post_id TEXT COLLATE "C" NOT NULL,
	actor   TEXT COLLATE "C" NOT NULL,
	kind    TEXT COLLATE "C" NOT NULL CHECK (kind IN ('like', 'share', 'quote', 'quiet quote')),
	uri     TEXT COLLATE "C" NOT NULL, -- of the activity; of the quoting post
	domain  TEXT COLLATE "C" NOT NULL, -- registrable, of the actor
	at      BIGINT NOT NULL
);
CREATE INDEX reaction_post ON reaction (post_id, kind);
CREATE INDEX reaction_actor ON reaction (actor, uri);
CREATE INDEX reaction_domain ON reaction (domain, at);
CREATE INDEX reaction_at ON reaction (at);
