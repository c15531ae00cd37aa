-- +goose Up

-- The tree of a followed log: the last checkpoint that was accepted, and up to which number entries are compared with the tree.
CREATE TABLE followed_tree (
	board      TEXT    PRIMARY KEY,
	epoch      TEXT    NOT NULL,
	size       INTEGER NOT NULL,
	proved     INTEGER NOT NULL,
	checkpoint BLOB    NOT NULL
) STRICT;

-- Conflicts of the kind tree.
CREATE TABLE log_conflict_new (
	board      TEXT    PRIMARY KEY,
	kind       TEXT    NOT NULL CHECK (kind IN ('fork', 'fallback', 'tree')),
	epoch      TEXT    NOT NULL,
	seq        INTEGER NOT NULL,
	ours       TEXT    NOT NULL,
	theirs     TEXT    NOT NULL,
	ours_doc   BLOB    NOT NULL,
	theirs_doc BLOB    NOT NULL,
	at         INTEGER NOT NULL
) STRICT;
INSERT INTO log_conflict_new SELECT board, kind, epoch, seq, ours, theirs, ours_doc, theirs_doc, at FROM log_conflict;
DROP TABLE log_conflict;
ALTER TABLE log_conflict_new RENAME TO log_conflict;

CREATE TABLE log_report_new (
	host   TEXT    PRIMARY KEY,
	kind   TEXT    NOT NULL CHECK (kind IN ('fork', 'fallback', 'tree')),
	epoch  TEXT    NOT NULL,
	seq    INTEGER NOT NULL,
	ours   TEXT    NOT NULL,
	theirs TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	until  INTEGER NOT NULL
) STRICT;
INSERT INTO log_report_new SELECT host, kind, epoch, seq, ours, theirs, at, until FROM log_report;
DROP TABLE log_report;
ALTER TABLE log_report_new RENAME TO log_report;
CREATE INDEX log_report_until ON log_report (until);
