-- +goose Up

-- What happened at a place, a profile or the node (handle ''), in parts of ten minutes, for a day.
CREATE TABLE crowd (
	handle TEXT    NOT NULL,
	what   TEXT    NOT NULL,
	at     INTEGER NOT NULL,
	n      INTEGER NOT NULL,
	until  INTEGER NOT NULL,
	PRIMARY KEY (handle, what, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX crowd_until ON crowd (until);
