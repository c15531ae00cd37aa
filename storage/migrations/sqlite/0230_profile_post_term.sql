-- +goose Up

-- The words of listed profiles and of visible posts as their writers spell them, as item_term has those of items: n have one.
-- profile_said has the counted words of each profile. Posts of post_fresh are counted soon (storage/postterm.go).
CREATE TABLE profile_term (
	word TEXT PRIMARY KEY,
	key  TEXT NOT NULL,
	head TEXT NOT NULL,
	tail TEXT NOT NULL,
	size INTEGER NOT NULL,
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX profile_term_key ON profile_term (key);
CREATE INDEX profile_term_head ON profile_term (head, size);
CREATE INDEX profile_term_tail ON profile_term (tail, size);

CREATE TABLE post_term (
	word TEXT PRIMARY KEY,
	key  TEXT NOT NULL,
	head TEXT NOT NULL,
	tail TEXT NOT NULL,
	size INTEGER NOT NULL,
	n    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX post_term_key ON post_term (key);
CREATE INDEX post_term_head ON post_term (head, size);
CREATE INDEX post_term_tail ON post_term (tail, size);

CREATE TABLE profile_said (
	seq   INTEGER PRIMARY KEY,
	words TEXT NOT NULL
) STRICT;

CREATE TABLE post_fresh (
	seq INTEGER PRIMARY KEY
) STRICT;
