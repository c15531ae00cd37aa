-- +goose Up

CREATE TABLE complaint (
	id          TEXT    PRIMARY KEY,
	state       TEXT    NOT NULL CHECK (state IN ('received', 'acknowledged', 'resolved')),
	due_at      INTEGER NOT NULL,
	complainant TEXT    NOT NULL,
	known       INTEGER NOT NULL CHECK (known IN (0, 1)),
	token_hash  BLOB    NOT NULL,
	created_at  INTEGER NOT NULL,
	until       INTEGER,
	doc         TEXT    NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX complaint_due ON complaint (due_at, id) WHERE state <> 'resolved';
CREATE INDEX complaint_open ON complaint (known) WHERE state <> 'resolved';
CREATE INDEX complaint_over ON complaint (id) WHERE state = 'resolved';
CREATE INDEX complaint_of ON complaint (complainant, created_at);
CREATE INDEX complaint_until ON complaint (until) WHERE until IS NOT NULL;
