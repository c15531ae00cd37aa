-- +goose Up

-- What processes of one deployment tell one another of what callers used up, so
-- that rates and prices are of all of them. Kept for a minute.
CREATE TABLE usage (
	process TEXT    NOT NULL,
	n       INTEGER NOT NULL,
	at      INTEGER NOT NULL,
	doc     BLOB    NOT NULL,
	PRIMARY KEY (process, n)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_at ON usage (at);
