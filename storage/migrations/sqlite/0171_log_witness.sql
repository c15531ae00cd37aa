-- +goose Up

-- What nodes that follow our board cosigned last of the tree of its log.
CREATE TABLE log_witness (
	host     TEXT    PRIMARY KEY,
	epoch    TEXT    NOT NULL,
	size     INTEGER NOT NULL,
	root     BLOB    NOT NULL,
	line     TEXT    NOT NULL,
	asked_at INTEGER NOT NULL,
	until    INTEGER NOT NULL
) STRICT;
CREATE INDEX log_witness_until ON log_witness (until);
