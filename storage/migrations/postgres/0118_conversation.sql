-- +goose Up

-- What a post of the fediverse says beside its text. An unlisted one is on the board and is neither boosted nor in the feed.
ALTER TABLE post ADD COLUMN unlisted BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE post ADD COLUMN sensitive BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE post ADD COLUMN warning TEXT COLLATE "C" NOT NULL DEFAULT '';
-- When its author last changed it, null for never, and how often.
ALTER TABLE post ADD COLUMN edited_at BIGINT;
ALTER TABLE post ADD COLUMN revisions BIGINT NOT NULL DEFAULT 0;
-- Counts of reaction.
ALTER TABLE post ADD COLUMN likes BIGINT NOT NULL DEFAULT 0;
ALTER TABLE post ADD COLUMN shares BIGINT NOT NULL DEFAULT 0;

-- Earlier texts of a post, n = 1 the first. written_at is when its author wrote that text.
CREATE TABLE post_revision (
	post       TEXT COLLATE "C" NOT NULL,
	n          BIGINT           NOT NULL,
	title      TEXT COLLATE "C" NOT NULL,
	body       TEXT COLLATE "C" NOT NULL,
	warning    TEXT COLLATE "C" NOT NULL,
	written_at BIGINT           NOT NULL,
	PRIMARY KEY (post, n)
);

-- Which actors of other servers like or share a post of this node, so that each counts once and can undo it. activity is the
-- id of its Like or Announce.
CREATE TABLE reaction (
	activity TEXT COLLATE "C" NOT NULL PRIMARY KEY,
	post     TEXT COLLATE "C" NOT NULL,
	kind     TEXT COLLATE "C" NOT NULL CHECK (kind IN ('like', 'share')),
	actor    TEXT COLLATE "C" NOT NULL,
	host     TEXT COLLATE "C" NOT NULL,
	at       BIGINT           NOT NULL
);
CREATE UNIQUE INDEX reaction_actor ON reaction (post, kind, actor);
CREATE INDEX reaction_at ON reaction (at);
