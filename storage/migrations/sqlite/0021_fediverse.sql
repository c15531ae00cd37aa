-- +goose Up

-- Posts by their author on another server, for an author whose account is deleted there.
CREATE INDEX post_actor ON post (author_actor, seq) WHERE node IS NOT NULL AND state <> 'deleted';

-- The language that a post is in as far as its author's profile says, a tag of
-- BCP 47; empty when unknown.
ALTER TABLE post ADD COLUMN language TEXT NOT NULL DEFAULT '';

-- What the outbox of a board lists: its posts but those of visitors.
CREATE INDEX post_announced ON post (board, seq) WHERE state = 'visible' AND author_method <> 'pow';

-- A report that another server sent, by its domain; empty for one that counts
-- towards hiding.
ALTER TABLE report ADD COLUMN domain TEXT NOT NULL DEFAULT '';
CREATE INDEX report_domain ON report (domain) WHERE domain <> '' AND NOT spent;

-- Servers that fetched a post, signed by an actor of theirs, and do not follow:
-- they are told when it is hidden or deleted. Capped: see cap.go.
CREATE TABLE reader (
	id      INTEGER PRIMARY KEY,
	post_id TEXT NOT NULL,
	host    TEXT NOT NULL,
	actor   TEXT NOT NULL,
	at      INTEGER NOT NULL,
	UNIQUE (post_id, host)
) STRICT;
CREATE INDEX reader_at ON reader (at);
