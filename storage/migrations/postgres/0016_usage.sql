-- +goose Up

-- What processes of one deployment tell one another of what callers used up, so
-- that rates and prices are of all of them. Kept for a minute, and without a log:
-- after a crash of the server nobody misses it.
CREATE UNLOGGED TABLE usage (
	process TEXT COLLATE "C" NOT NULL,
	n       BIGINT NOT NULL,
	at      BIGINT NOT NULL,
	doc     BYTEA  NOT NULL,
	PRIMARY KEY (process, n)
);
CREATE INDEX usage_at ON usage (at);
