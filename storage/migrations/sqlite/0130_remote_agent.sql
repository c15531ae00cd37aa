-- +goose Up

-- Every listed agent of a followed node is known, not only its shops. What nodes told of shops is told again with the rest.
DROP TABLE remote_shop_word;
DROP TABLE remote_shop;
DROP TABLE shop_told;
DELETE FROM job WHERE kind = 'shop-told';
UPDATE log SET object_id = 'agent/' || substr(object_id, 6) WHERE object_id LIKE 'shop/%';

-- Agents of other nodes, by their actors, as their nodes summarize them.
CREATE TABLE remote_agent (
	seq   INTEGER PRIMARY KEY,
	actor TEXT    NOT NULL UNIQUE,
	host  TEXT    NOT NULL,
	agent TEXT    NOT NULL,
	doc   TEXT    NOT NULL
) STRICT;
CREATE INDEX remote_agent_host ON remote_agent (host);
CREATE INDEX remote_agent_agent ON remote_agent (agent) WHERE agent <> '';
CREATE VIRTUAL TABLE remote_agent_word USING fts5 (words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');

-- Which summary of an agent of this node the log has.
CREATE TABLE agent_told (
	handle TEXT    PRIMARY KEY,
	digest TEXT    NOT NULL,
	at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The agents that are listed already.
INSERT INTO job (kind, lane, args, state, blocked, run_at, dedupe)
	SELECT 'agent-told', 'tell ' || p.handle, CAST(p.handle AS BLOB), 'waiting', 0, 0, 'agent-told ' || p.handle
	FROM profile p WHERE p.listed;
