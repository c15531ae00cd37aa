-- +goose Up

-- The Merkle tree over the entries of a board's log in one epoch.
CREATE TABLE log_tree (
	id     INTEGER PRIMARY KEY,
	stream INTEGER NOT NULL,
	epoch  TEXT    NOT NULL,
	size   INTEGER NOT NULL,
	root   BLOB    NOT NULL,
	UNIQUE (stream, epoch)
) STRICT;

-- The leaves: the hash of the entry, and the salted hash of its content. The salt is deleted with the content.
CREATE TABLE log_leaf (
	tree    INTEGER NOT NULL,
	seq     INTEGER NOT NULL,
	entry   BLOB,
	content BLOB,
	salt    BLOB,
	PRIMARY KEY (tree, seq)
) STRICT, WITHOUT ROWID;

-- Up to 256 hashes of one level, 32 bytes each.
CREATE TABLE log_tile (
	tree   INTEGER NOT NULL,
	level  INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	hashes BLOB    NOT NULL,
	PRIMARY KEY (tree, level, n)
) STRICT;
