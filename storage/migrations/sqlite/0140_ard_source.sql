-- +goose Up

-- Directories of other makers that this node follows, and their entries as they have them.
CREATE TABLE ard_source (
	url        TEXT    PRIMARY KEY,
	host       TEXT    NOT NULL,
	registry   INTEGER NOT NULL,
	tag        TEXT    NOT NULL,
	refused    INTEGER NOT NULL,
	checked_at INTEGER NOT NULL,
	ok_at      INTEGER NOT NULL,
	whole_at   INTEGER NOT NULL,
	next_at    INTEGER NOT NULL,
	failures   INTEGER NOT NULL,
	last_error TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE ard_entry (
	seq        INTEGER PRIMARY KEY,
	source     TEXT    NOT NULL,
	identifier TEXT    NOT NULL,
	publisher  TEXT    NOT NULL,
	digest     TEXT    NOT NULL,
	doc        TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX ard_entry_source ON ard_entry (source, identifier);
CREATE INDEX ard_entry_identifier ON ard_entry (identifier, seq);
CREATE VIRTUAL TABLE ard_entry_word USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
