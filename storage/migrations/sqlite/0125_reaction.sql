-- +goose Up

-- What actors of other servers did with posts of this node. A key is one actor's like or boost of one post, or one quote of it.
ALTER TABLE post ADD COLUMN likes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE post ADD COLUMN shares INTEGER NOT NULL DEFAULT 0;
ALTER TABLE post ADD COLUMN quotes INTEGER NOT NULL DEFAULT 0;
CREATE TABLE reaction (
	key     TEXT    PRIMARY KEY,
	post_id TEXT    NOT NULL,
	actor   TEXT    NOT NULL,
	kind    TEXT    NOT NULL CHECK (kind IN ('like', 'share', 'quote', 'quiet quote')),
	uri     TEXT    NOT NULL, -- of the activity; of the quoting post
	domain  TEXT    NOT NULL, -- registrable, of the actor
	at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX reaction_post ON reaction (post_id, kind);
CREATE INDEX reaction_actor ON reaction (actor, uri);
CREATE INDEX reaction_domain ON reaction (domain, at);
CREATE INDEX reaction_at ON reaction (at);
