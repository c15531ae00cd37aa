-- +goose Up

-- What a post of the fediverse says beside its text. An unlisted one is on the board and is neither boosted nor in the feed.
ALTER TABLE post ADD COLUMN unlisted INTEGER NOT NULL DEFAULT 0 CHECK (unlisted IN (0, 1));
ALTER TABLE post ADD COLUMN sensitive INTEGER NOT NULL DEFAULT 0 CHECK (sensitive IN (0, 1));
ALTER TABLE post ADD COLUMN warning TEXT NOT NULL DEFAULT '';
-- When its author last changed it, null for never, and how often.
ALTER TABLE post ADD COLUMN edited_at INTEGER;
ALTER TABLE post ADD COLUMN revisions INTEGER NOT NULL DEFAULT 0;
-- Counts of reaction.
ALTER TABLE post ADD COLUMN likes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE post ADD COLUMN shares INTEGER NOT NULL DEFAULT 0;

-- Earlier texts of a post, n = 1 the first. written_at is when its author wrote that text.
CREATE TABLE post_revision (
	post       TEXT    NOT NULL,
	n          INTEGER NOT NULL,
	title      TEXT    NOT NULL,
	body       TEXT    NOT NULL,
	warning    TEXT    NOT NULL,
	written_at INTEGER NOT NULL,
	PRIMARY KEY (post, n)
) STRICT, WITHOUT ROWID;

-- Which actors of other servers like or share a post of this node, so that each counts once and can undo it. activity is the
-- id of its Like or Announce.
CREATE TABLE reaction (
	activity TEXT    NOT NULL PRIMARY KEY,
	post     TEXT    NOT NULL,
	kind     TEXT    NOT NULL CHECK (kind IN ('like', 'share')),
	actor    TEXT    NOT NULL,
	host     TEXT    NOT NULL,
	at       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX reaction_actor ON reaction (post, kind, actor);
CREATE INDEX reaction_at ON reaction (at);
