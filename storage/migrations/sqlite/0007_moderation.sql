-- +goose Up

-- Who may not write here, or be heard. value is a chain identity, a thumbprint,
-- a keyed hash of a network, a host, a handle of this node, or an actor.
CREATE TABLE block (
	id         TEXT    PRIMARY KEY,
	kind       TEXT    NOT NULL CHECK (kind IN ('agent', 'key', 'network', 'host', 'handle', 'actor')),
	value      TEXT    NOT NULL,
	post       TEXT    NOT NULL,
	reason     TEXT    NOT NULL,
	note       TEXT    NOT NULL,
	actor      TEXT    NOT NULL,
	created_at INTEGER NOT NULL,
	expires_at INTEGER,
	UNIQUE (kind, value)
) STRICT, WITHOUT ROWID;
CREATE INDEX block_kind ON block (kind, id);
CREATE INDEX block_expires ON block (expires_at) WHERE expires_at IS NOT NULL;

-- What operators note for one another about a post, a handle, a host, …
CREATE TABLE moderation_note (
	id      TEXT    PRIMARY KEY,
	subject TEXT    NOT NULL,
	text    TEXT    NOT NULL,
	actor   TEXT    NOT NULL,
	at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX moderation_note_subject ON moderation_note (subject, id);

-- What was done and why, as the public may read it.
CREATE TABLE moderation_log (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	at      INTEGER NOT NULL,
	action  TEXT    NOT NULL,
	kind    TEXT    NOT NULL,
	subject TEXT    NOT NULL,
	reason  TEXT    NOT NULL
) STRICT;

-- Visible posts with reports that nobody has decided about.
CREATE TABLE review (
	seq     INTEGER PRIMARY KEY,
	post_id TEXT    NOT NULL
) STRICT;
INSERT INTO review (seq, post_id)
	SELECT DISTINCT p.seq, p.id FROM report r JOIN post p ON p.id = r.post_id WHERE NOT r.spent AND p.state = 'visible';

-- From which network an anonymous post came: a keyed hash, kept for a while, so
-- that whoever wrote a post can be blocked.
CREATE TABLE writer (
	post_id TEXT PRIMARY KEY,
	network TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX report_at ON report (at);
CREATE INDEX post_deleted ON post (seq) WHERE state = 'deleted';
CREATE INDEX profile_created ON profile (created_at);

-- What is old is forgotten: see audit.go.
CREATE INDEX audit_at ON audit (at);
CREATE INDEX audit_told ON audit (at) WHERE action IN ('kept-out', 'flag');
