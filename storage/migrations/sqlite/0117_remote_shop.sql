-- +goose Up

-- When the log of a followed board was last read.
ALTER TABLE subscription ADD COLUMN ok_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX subscription_ok ON subscription (ok_at) WHERE ok_at > 0;

-- Shops of other nodes, by their actors, as their nodes summarize them.
CREATE TABLE remote_shop (
	seq   INTEGER PRIMARY KEY,
	actor TEXT    NOT NULL UNIQUE,
	host  TEXT    NOT NULL,
	agent TEXT    NOT NULL,
	doc   TEXT    NOT NULL
) STRICT;
CREATE INDEX remote_shop_host ON remote_shop (host);
CREATE INDEX remote_shop_agent ON remote_shop (agent) WHERE agent <> '';
CREATE VIRTUAL TABLE remote_shop_word USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- Which summary of a shop of this node the log has.
CREATE TABLE shop_told (
	handle TEXT    PRIMARY KEY,
	digest TEXT    NOT NULL,
	at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The shops that are listed already.
INSERT INTO job (kind, lane, args, state, blocked, run_at, dedupe)
	SELECT 'shop-told', 'tell ' || p.handle, CAST(p.handle AS BLOB), 'waiting', 0, 0, 'shop-told ' || p.handle
	FROM merchant m JOIN profile p ON p.seq = m.seq WHERE p.listed;
